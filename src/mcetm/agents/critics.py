"""Critics: Q(s, a) of several networks side by side, and how their slow copies follow them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.learner import Minibatch
from mcetm.nn.mlp import MLP, Initialisation
from mcetm.nn.scaling import InputScaling
from mcetm.training.optimise import descend, trained

_T = TypeVar("_T")


class Critic(eqx.Module):
    """Q(s, a) of one example."""

    network: MLP
    inputs: InputScaling

    def __call__(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """The value of an action."""
        return self.network(self.inputs.pair(obs, action))[0]

    def of_actions(
        self, obs: Float[Array, " obs"], actions: Float[Array, "actions action"]
    ) -> Float[Array, " actions"]:
        """The values of several actions at one state, whose share of the first layer is computed once."""
        first, *rest = self.network.layers
        width, activate = obs.shape[0], self.network.activate
        state = first.weight[:, :width] @ self.inputs.obs.normalize(obs) + first.bias

        def one(action: Float[Array, " action"]) -> Float[Array, ""]:
            x = state + first.weight[:, width:] @ self.inputs.action.normalize(action)
            for layer in rest:
                x = layer(activate(x))
            return x[0]

        return jax.vmap(one)(actions)


def make_critics(
    count: int,
    inputs: InputScaling,
    *,
    width: int,
    depth: int,
    initialisation: Initialisation = "uniform",
    key: PRNGKeyArray,
) -> Critic:
    """Several with fresh weights, on a leading axis."""
    wide = inputs.obs.mean.shape[0] + inputs.action.mean.shape[0]

    def make(key: PRNGKeyArray) -> Critic:
        network = MLP(wide, 1, width=width, depth=depth, initialisation=initialisation, key=key)
        return Critic(network, inputs)

    return eqx.filter_vmap(make)(jax.random.split(key, count))


def values_of_rows(
    critics: Critic, obs: Float[Array, "rows obs"], action: Float[Array, "rows action"]
) -> Float[Array, "critics rows"]:
    """Each critic's values; critics outside, so that their matrix products need no transposition."""
    return eqx.filter_vmap(lambda critic: jax.vmap(critic)(obs, action))(critics)


def values(
    critics: Critic, obs: Float[Array, " obs"], action: Float[Array, " action"]
) -> Float[Array, " critics"]:
    """Each critic's value of an action."""
    return eqx.filter_vmap(lambda critic: critic(obs, action))(critics)


def teach(
    critics: Critic,
    moments: optax.OptState,
    batch: Minibatch,
    target: Float[Array, " rows"],
    *,
    rate: float,
    extra: Callable[[Critic], Array] | None = None,
) -> tuple[Critic, optax.OptState, dict[str, Array]]:
    """One step of Adam towards the targets: squared errors, averaged over rows and summed over critics."""
    target = jax.lax.stop_gradient(target)

    def loss(critics: Critic) -> tuple[Array, dict[str, Array]]:
        found = values_of_rows(critics, batch.obs, batch.action)
        error = ((found - target) ** 2).mean(axis=1).sum()
        metrics = {"critic_loss": error, "q": found.mean(), "target": target.mean()}
        if extra is None:
            return error, metrics
        more = extra(critics)
        return error + more, {**metrics, "regulariser": more}

    (_, metrics), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(critics)
    critics, moments = descend(optax.adam(rate), critics, gradient, moments)
    return critics, moments, metrics


def follow(slow: _T, fast: _T, smoothing: float) -> _T:
    """The slow copy, a little closer to the fast one."""
    # Only what is trained has moved.
    closer = lambda old, new: new if old is None else old + smoothing * (new - old)  # noqa: E731
    return jax.tree_util.tree_map(closer, trained(slow), fast, is_leaf=lambda leaf: leaf is None)

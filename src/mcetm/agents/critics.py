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
from mcetm.training.optimise import descend

_T = TypeVar("_T")


class Critic(eqx.Module):
    """Q(s, a) of one example."""

    network: MLP
    inputs: InputScaling

    def __call__(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """The value of an action."""
        return self.network(self.inputs.pair(obs, action))[0]


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
        found = jax.vmap(lambda o, a: values(critics, o, a))(batch.obs, batch.action)
        error = ((found - target[:, None]) ** 2).mean(axis=0).sum()
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
    closer = lambda old, new: (  # noqa: E731
        old + smoothing * (new - old) if eqx.is_inexact_array(new) else new
    )
    return jax.tree_util.tree_map(closer, slow, fast)

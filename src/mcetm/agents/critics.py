"""Critics: Q(s, a) of several networks side by side, and how their slow copies follow them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.learner import Minibatch
from mcetm.nn.members import take_members
from mcetm.nn.mlp import MLP, Initialisation, LayerNormMLP, NetworkFactory, as_mlp
from mcetm.nn.scaling import InputScaling
from mcetm.training.metrics import Metrics, Rows
from mcetm.training.optimise import adam_at, apply_gradient, trained

_T = TypeVar("_T")


class Critics(eqx.Module):
    """Q(s, a) of several networks, which see their inputs at the same scale."""

    networks: Any
    """Leading axis: critics."""
    inputs: InputScaling

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> Float[Array, " critics"]:
        """Each critic's value of an action."""
        pair = self.inputs.pair(obs, action)
        return eqx.filter_vmap(lambda network: network(pair)[0])(self.networks)

    def of_rows(
        self, obs: Float[Array, "rows obs"], action: Float[Array, "rows action"]
    ) -> Float[Array, "critics rows"]:
        """Of many examples; critics outside, so that their matrix products need no transposition."""
        pairs = jax.vmap(self.inputs.pair)(obs, action)
        return eqx.filter_vmap(lambda network: jax.vmap(network)(pairs)[:, 0])(self.networks)

    def of_actions(
        self, obs: Float[Array, "rows obs"], actions: Float[Array, "rows actions action"]
    ) -> Float[Array, "critics rows actions"]:
        """Of several actions at each state; an MLP computes the state's share of its first layer once."""
        if as_mlp(self.networks) is None:
            of_state = lambda o, some: jax.vmap(lambda a: self(o, a))(some)  # noqa: E731
            return jnp.moveaxis(jax.vmap(of_state)(obs, actions), -1, 0)
        states = jax.vmap(self.inputs.obs.normalize)(obs)
        moves = jax.vmap(jax.vmap(self.inputs.action.normalize))(actions)

        def one(network: MLP, state: Float[Array, " obs"], move: Float[Array, "actions action"]) -> Array:
            first, *rest = network.layers
            width = state.shape[0]
            shared = first.weight[:, :width] @ state + first.bias

            def value(action: Float[Array, " action"]) -> Float[Array, ""]:
                x = shared + first.weight[:, width:] @ action
                for layer in rest:
                    x = layer(network.activate(x))
                return x[0]

            return jax.vmap(value)(move)

        return eqx.filter_vmap(lambda n: jax.vmap(lambda s, m: one(n, s, m))(states, moves))(self.networks)

    def only(self, index: int) -> Critics:
        """One of them alone."""
        return self.some(slice(index, index + 1))

    def some(self, which: Any) -> Critics:
        """Those with these numbers."""
        return replace(self, networks=take_members(self.networks, which))


def make_critics(
    count: int,
    inputs: InputScaling,
    *,
    width: int,
    depth: int,
    initialisation: Initialisation = "uniform",
    layer_norm: bool = False,
    network: NetworkFactory | None = None,
    key: PRNGKeyArray,
) -> Critics:
    """Several with fresh weights."""
    wide = inputs.obs.mean.shape[0] + inputs.action.mean.shape[0]
    ours = LayerNormMLP if layer_norm else MLP
    make = network or partial(ours, width=width, depth=depth, initialisation=initialisation)
    return Critics(eqx.filter_vmap(lambda k: make(wide, 1, key=k))(jax.random.split(key, count)), inputs)


def update_critics(
    critics: Critics,
    opt_state: optax.OptState,
    batch: Minibatch,
    target: Float[Array, " rows"],
    *,
    rate: float,
    extra: Callable[[Critics], Array] | None = None,
) -> tuple[Critics, optax.OptState, Metrics]:
    """One step of Adam towards the targets: squared errors, averaged over rows and summed over critics."""
    target = jax.lax.stop_gradient(target)

    def loss(critics: Critics) -> tuple[Array, Metrics]:
        found = critics.of_rows(batch.obs, batch.action)
        errors = ((found - target) ** 2).sum(axis=0)
        metrics: Metrics = {
            "critic_loss": Rows(errors),
            "q": Rows(found.mean(axis=0)),
            "target": Rows(target),
        }
        if extra is None:
            return errors.mean(), metrics
        more = extra(critics)
        return errors.mean() + more, {**metrics, "regulariser": more}

    (_, metrics), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(critics)
    critics, opt_state = apply_gradient(adam_at(rate), critics, gradient, opt_state)
    return critics, opt_state, metrics


def polyak_update(slow: _T, fast: _T, smoothing: float) -> _T:
    """The slow copy, a little closer to the fast one."""
    # Only what is trained has moved. The rest stays its own: a loop would copy the other's at every step.
    closer = lambda old, new: None if old is None else old + smoothing * (new - old)  # noqa: E731
    is_none = lambda leaf: leaf is None  # noqa: E731
    return eqx.combine(jax.tree_util.tree_map(closer, trained(slow), trained(fast), is_leaf=is_none), slow)

"""Energies E(s, a, s'): p(s' | s, a) ∝ exp(−E). One example at a time, in raw units.

`PlainEnergy` is the paper's: a network on (s, a, s'). `AnchoredEnergy` starts as the negative log-density of
a trained Gaussian and learns only what that misses; its level therefore means something for every (s, a),
which a plain energy trained with InfoNCE cannot promise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.dynamics.gaussian import Gaussian
from mcetm.dynamics.space import Space
from mcetm.nn.mlp import MLP, Activation, NetworkFactory
from mcetm.nn.scaling import InputScaling, frozen


@runtime_checkable
class Energy(Protocol):
    """Anything that gives one transition an energy, and chains a scale to move at."""

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The energy of one transition."""
        ...

    def unit(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, " obs"] | None:
        """The size of a step near (s, a) in raw units, where the energy knows one."""
        ...


class Conditional(eqx.Module):
    """E(s, a, ·) of one (s, a), as a function of the coordinates x in which chains move."""

    energy: Energy
    space: Space
    obs: Float[Array, " obs"]
    action: Float[Array, " action"]

    def __call__(self, x: Float[Array, " obs"]) -> Float[Array, ""]:
        """The energy of the state that x stands for."""
        return self.energy(self.obs, self.action, self.space.decode(self.obs, x))


class PlainEnergy(eqx.Module):
    """E = network(s, a, x), where x are the coordinates of s' in `space`.

    With a trunk, E = network(trunk(s, a), x): whatever depends on (s, a) alone is worked out once for all the
    candidates of a row, so that the same time sees many more rows.
    """

    network: Callable[[Array], Array]
    inputs: InputScaling
    space: Space
    trunk: MLP | None

    def __init__(
        self,
        statistics: Statistics,
        space: Space,
        *,
        width: int = 200,
        depth: int = 4,
        activation: Activation = "relu",
        trunk: int = 0,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> None:
        obs_dim, action_dim = len(statistics.obs.mean), len(statistics.action.mean)
        sizes: dict[str, Any] = {"width": width, "activation": activation}
        pair_dim, self.trunk = obs_dim + action_dim, None
        if trunk:
            key, trunk_key = jax.random.split(key)
            self.trunk = MLP(pair_dim, width, depth=trunk - 1, key=trunk_key, **sizes)
            pair_dim = width
        make = network or partial(MLP, depth=depth, **sizes)
        self.network = make(pair_dim + obs_dim, 1, key=key)
        self.inputs = InputScaling.of(statistics.obs, statistics.action)
        self.space = space

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The energy of one transition."""
        pair = self.inputs.pair(obs, action)
        if self.trunk is not None:
            pair = self.trunk.activate(self.trunk(pair))
        return self.network(jnp.concatenate([pair, self.space.encode(obs, next_obs)]))[0]

    def unit(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> None:
        """No scale of its own: chains move in the units of their space."""


class AnchoredEnergy(eqx.Module):
    """E = −log N(s'; μ(s, a), σ(s, a)) + U(s, a, s', residual); U begins as zero, the anchor stays as it is.

    The residual (s' − μ)/σ enters U through arcsinh: linear near the prediction, logarithmic far from it, so
    that U sees both at one scale.
    """

    anchor: Gaussian
    correction: MLP

    def __init__(
        self,
        anchor: Gaussian,
        *,
        width: int = 200,
        depth: int = 4,
        activation: Activation = "silu",
        key: PRNGKeyArray,
    ) -> None:
        obs_dim, action_dim = anchor.inputs.obs.mean.shape[-1], anchor.inputs.action.mean.shape[-1]
        self.anchor = anchor
        network = MLP(3 * obs_dim + action_dim, 1, width=width, depth=depth, activation=activation, key=key)
        last = network.layers[-1]
        self.correction = eqx.tree_at(
            lambda n: (n.layers[-1].weight, n.layers[-1].bias),
            network,
            (jnp.zeros_like(last.weight), jnp.zeros_like(last.bias)),
        )

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The energy of one transition."""
        anchor = frozen(self.anchor)
        mean, std = anchor.predict(obs, action)
        residual = jnp.arcsinh((next_obs - mean) / std)
        inputs = jnp.concatenate([anchor.inputs.triple(obs, action, next_obs), residual])
        return anchor.energy(obs, action, next_obs) + self.correction(inputs)[0]

    def unit(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, " obs"]:
        """The spread that the anchor expects: in units of it, every direction is equally steep."""
        return frozen(self.anchor).predict(obs, action)[1]

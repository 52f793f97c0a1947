"""Energies E(s, a, s'): p(s' | s, a) ∝ exp(−E). One example at a time, in raw units.

`PlainEnergy` is the paper's: a network on (s, a, s'). `AnchoredEnergy` starts as the negative log-density of
a trained Gaussian and learns only what that misses. Its level begins as that density's. InfoNCE keeps no
level, neither of a plain energy nor of what is learned on an anchor; `dynamics/support.py` sets one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.dynamics.gaussian import Gaussian
from mcetm.dynamics.manifold import Autoencoder
from mcetm.dynamics.space import Space
from mcetm.nn.mlp import MLP, Activation, NetworkFactory, as_mlp
from mcetm.nn.scaling import InputScaling, frozen


class Energy(eqx.Module):
    """Anything that gives one transition an energy."""

    anchor: Gaussian | None = eqx.field(default=None, kw_only=True)
    """The Gaussian that it corrects; None for an energy that stands alone."""

    @abc.abstractmethod
    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The energy of one transition."""

    @property
    def widths(self) -> tuple[int, int] | None:
        """How many numbers a state has, and an action; None where it takes any."""
        return None if self.anchor is None else self.anchor.inputs.widths

    @property
    def mlp(self) -> MLP | None:
        """The network along which chains move, if it is an MLP: kernels know no other."""
        return None

    def preconditioner(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"]
    ) -> Float[Array, " obs"] | None:
        """The size of a step near (s, a) in raw units, where the energy knows one.

        It is the spread that an anchor expects: in units of it, every direction is equally steep.
        """
        return None if self.anchor is None else frozen(self.anchor).predict(obs, action)[1]


class Conditional(eqx.Module):
    """E(s, a, ·) of one (s, a), as a function of the coordinates x in which chains move."""

    energy: Energy
    space: Space
    obs: Float[Array, " obs"]
    action: Float[Array, " action"]

    def __call__(self, x: Float[Array, " obs"]) -> Float[Array, ""]:
        """The energy of the state that x stands for."""
        return self.energy(self.obs, self.action, self.space.decode(self.obs, x))

    @property
    def preconditioner(self) -> Float[Array, " obs"] | None:
        """The energy's own, in the coordinates."""
        size = self.energy.preconditioner(self.obs, self.action)
        return None if size is None else size / self.space.scale.std

    def code(self, autoencoder: Autoencoder, x: Float[Array, " obs"]) -> Float[Array, " latent"]:
        """The code of the state that x stands for."""
        return autoencoder.encode(self.space.decode(self.obs, x))

    def decoded(self, autoencoder: Autoencoder, code: Float[Array, " latent"]) -> Float[Array, " obs"]:
        """The coordinates of the state that a code stands for."""
        return self.space.encode(self.obs, autoencoder.decode(code))


class PlainEnergy(Energy):
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

    @property
    def widths(self) -> tuple[int, int]:
        """How many numbers a state has, and an action."""
        return self.inputs.widths

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The energy of one transition."""
        pair = self.inputs.pair(obs, action)
        if self.trunk is not None:
            pair = self.trunk.activate(self.trunk(pair))
        return self.network(jnp.concatenate([pair, self.space.encode(obs, next_obs)]))[0]

    @property
    def mlp(self) -> MLP | None:
        """Its network, if it is none of a user's own."""
        return as_mlp(self.network)


class AnchoredEnergy(Energy):
    """E = −log N(s'; μ(s, a), σ(s, a)) + U(s, a, s', residual); U begins as zero, the anchor stays as it is.

    The residual (s' − μ)/σ enters U through arcsinh: linear near the prediction, logarithmic far from it, so
    that U sees both at one scale.
    """

    network: MLP
    """U."""

    def __init__(
        self,
        anchor: Gaussian,
        *,
        width: int = 200,
        depth: int = 4,
        activation: Activation = "silu",
        key: PRNGKeyArray,
    ) -> None:
        obs_dim, action_dim = anchor.inputs.widths
        self.anchor = anchor
        network = MLP(3 * obs_dim + action_dim, 1, width=width, depth=depth, activation=activation, key=key)
        last = network.layers[-1]
        self.network = eqx.tree_at(
            lambda n: (n.layers[-1].weight, n.layers[-1].bias),
            network,
            (jnp.zeros_like(last.weight), jnp.zeros_like(last.bias)),
        )

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The energy of one transition."""
        anchor = frozen(cast(Gaussian, self.anchor))
        mean, std = anchor.predict(obs, action)
        residual = jnp.arcsinh((next_obs - mean) / std)
        inputs = jnp.concatenate([anchor.inputs.triple(obs, action, next_obs), residual])
        return anchor.energy(obs, action, next_obs) + self.network(inputs)[0]

    @property
    def mlp(self) -> MLP | None:
        """The network of U."""
        return self.network

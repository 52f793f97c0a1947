"""Scales that networks see their inputs and outputs at: part of a model, never trained."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

_Tree = TypeVar("_Tree")


@runtime_checkable
class MeanAndStd(Protocol):
    """Anything with a mean and a standard deviation per column."""

    @property
    def mean(self) -> ArrayLike:
        """Mean of each column."""
        ...

    @property
    def std(self) -> ArrayLike:
        """Standard deviation of each column."""
        ...


class Scaling(eqx.Module):
    """An affine map between raw units and those of a network, mostly mean 0 and spread 1.

    It travels with the model that was trained under it; `stop_gradient` keeps optimisers off it.
    """

    mean: Float[Array, " columns"]
    std: Float[Array, " columns"]

    @classmethod
    def of(cls, statistics: MeanAndStd) -> Scaling:
        """From the statistics of a log."""
        return cls(jnp.asarray(statistics.mean), jnp.asarray(statistics.std))

    def normalize(self, raw: Float[Array, " columns"]) -> Float[Array, " columns"]:
        """From raw units."""
        return (raw - jax.lax.stop_gradient(self.mean)) / jax.lax.stop_gradient(self.std)

    def denormalize(self, scaled: Float[Array, " columns"]) -> Float[Array, " columns"]:
        """To raw units."""
        return scaled * jax.lax.stop_gradient(self.std) + jax.lax.stop_gradient(self.mean)


class InputScaling(eqx.Module):
    """Scales of what every network on transitions takes: states, next states (the same quantity), actions."""

    obs: Scaling
    action: Scaling

    @classmethod
    def of(cls, obs: MeanAndStd, action: MeanAndStd) -> InputScaling:
        """From the statistics of a log."""
        return cls(Scaling.of(obs), Scaling.of(action))

    @property
    def identity(self) -> InputScaling:
        """Of the same widths, with raw units for the network."""
        return InputScaling(
            *(Scaling(jnp.zeros_like(s.mean), jnp.ones_like(s.std)) for s in (self.obs, self.action))
        )

    @property
    def widths(self) -> tuple[int, int]:
        """How many numbers a state has, and an action."""
        return self.obs.mean.shape[-1], self.action.mean.shape[-1]

    def pair(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, " inputs"]:
        """(s, a) side by side."""
        return jnp.concatenate([self.obs.normalize(obs), self.action.normalize(action)])

    def triple(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, " inputs"]:
        """(s, a, s') side by side."""
        return jnp.concatenate([self.pair(obs, action), self.obs.normalize(next_obs)])


def frozen(tree: _Tree) -> _Tree:
    """The same module, through whose parameters no gradient flows."""
    return jax.tree_util.tree_map(
        lambda leaf: jax.lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf, tree
    )

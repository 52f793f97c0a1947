"""Transitions on the device, and minibatches drawn there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions

_NAMES = ("obs", "action", "reward", "next_obs", "terminated")


class Batch(eqx.Module):
    """Rows of a log as device arrays: the whole log, a minibatch, or (without the axis) one transition."""

    obs: Float[Array, "*rows obs"]
    action: Float[Array, "*rows action"]
    reward: Float[Array, "*rows"]
    next_obs: Float[Array, "*rows obs"]
    terminated: Bool[Array, "*rows"]
    count: int | None = eqx.field(static=True, default=None)
    """How many rows there are, where others fill them up to equal shares for several devices."""

    @classmethod
    def of(cls, transitions: Transitions) -> Batch:
        """The whole log."""
        return cls.of_fields({name: getattr(transitions, name) for name in _NAMES})

    @classmethod
    def of_fields(cls, fields: Mapping[str, np.ndarray]) -> Batch:
        """Rows by their fields."""
        columns: dict[str, Any] = {name: jnp.asarray(fields[name]) for name in _NAMES}
        return cls(**columns)

    def __len__(self) -> int:
        return self.obs.shape[0] if self.count is None else self.count

    def filled_up(self, shares: int) -> Batch:
        """With rows after the last, never drawn, so that so many equal shares can be made of them."""
        missing = -len(self) % shares
        if not missing:
            return self
        longer = lambda column: jnp.concatenate([column, column[:1].repeat(missing, axis=0)])  # noqa: E731
        return replace(jax.tree_util.tree_map(longer, self), count=len(self))

    @property
    def next_known(self) -> Bool[Array, "*rows"]:
        """Rows that say what came after; the others ended the task there."""
        return ~jnp.isnan(self.next_obs).any(axis=-1)

    @property
    def next_or_same(self) -> Float[Array, "*rows obs"]:
        """The next state; where it is unknown, the state itself: for uses that an end makes idle."""
        return jnp.where(self.next_known[..., None], self.next_obs, self.obs)

    def take(self, rows: Array) -> Batch:
        """These rows."""
        return replace(jax.tree_util.tree_map(lambda column: column[rows], self), count=None)

    def draw(self, size: int, *, key: PRNGKeyArray) -> Batch:
        """A minibatch, drawn uniformly with replacement."""
        return self.take(jax.random.randint(key, (size,), 0, len(self)))

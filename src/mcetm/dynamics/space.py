"""The coordinates in which chains of next states move: standardised, relative to s or not, inside a box."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.langevin import Box
from mcetm.nn.scaling import Scaling

Variable = Literal["next_obs", "change"]


class Space(eqx.Module):
    """An affine map between next states s' and coordinates x of spread 1, for each s.

    `next_obs`: x stands for s' itself (the paper). `change`: x stands for s' − s in units of its own spread
    (EMPO), which resolves a step however small it is beside the spread of the states.
    """

    scale: Scaling
    box: Box
    variable: Variable = eqx.field(static=True)

    @classmethod
    def of(cls, train: Transitions, variable: Variable = "next_obs", margin: float = 0.1) -> Space:
        """Scale and box of a log; the box leaves some room around the data."""
        statistics = Statistics.of(train)
        if variable == "change":
            normalizer, values = statistics.change, train.next_obs - train.obs
        else:
            normalizer, values = statistics.obs, train.next_obs
        scaled = normalizer.normalize(values)
        low, high = scaled.min(axis=0), scaled.max(axis=0)
        room = margin * np.maximum(high - low, 1e-3)
        return cls(Scaling.of(normalizer), Box(jnp.asarray(low - room), jnp.asarray(high + room)), variable)

    def enter(self, obs: Float[Array, " obs"], next_obs: Float[Array, " obs"]) -> Float[Array, " obs"]:
        """Coordinates of a next state."""
        return self.scale.normalize(next_obs - obs if self.variable == "change" else next_obs)

    def leave(self, obs: Float[Array, " obs"], x: Float[Array, " obs"]) -> Float[Array, " obs"]:
        """The next state at these coordinates."""
        raw = self.scale.denormalize(x)
        return obs + raw if self.variable == "change" else raw

"""The coordinates in which chains of next states move: at one scale, relative to s or not, inside a box."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mcetm.data.normalize import FLOOR, Normalizer, Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.langevin import Box
from mcetm.nn.scaling import Scaling

Variable = Literal["next_obs", "change", "boxed"]


class Space(eqx.Module):
    """An affine map between next states s' and coordinates x, for each s.

    `next_obs`: x stands for s' itself in units of its spread (the paper). `change`: for s' − s in units of
    its own spread, which resolves a step however small it is beside the spread of the states. `boxed`: for
    s' − s in units of its largest absolute value (EMPO), so that every change of the log lies in [−1, 1] and
    chains that start anywhere in the box come to the data within their few steps.
    """

    scale: Scaling
    box: Box
    variable: Variable = eqx.field(static=True)

    @classmethod
    def of(cls, train: Transitions, variable: Variable = "next_obs", margin: float = 0.1) -> Space:
        """Scale and box of a log; the box leaves some room around the data."""
        if variable == "boxed":
            largest = np.max([np.abs(log.next_obs - log.obs).max(axis=0) for log in train.blocks()], axis=0)
            constant = largest < FLOOR
            normalizer = Normalizer(np.zeros_like(largest), np.where(constant, 1.0, largest))
            high = np.where(constant, FLOOR, 1.0 + margin).astype(np.float32)  # what never changes stays
            low = -high
        else:
            statistics = Statistics.of(train)
            normalizer = statistics.obs if variable == "next_obs" else statistics.change
            ranges = []
            for log in train.blocks():
                scaled = normalizer.normalize(
                    log.next_obs if variable == "next_obs" else log.next_obs - log.obs
                )
                ranges.append((scaled.min(axis=0), scaled.max(axis=0)))
            low, high = (
                np.min([low for low, _ in ranges], axis=0),
                np.max([high for _, high in ranges], axis=0),
            )
            room = margin * np.maximum(high - low, 1e-3)
            low, high = low - room, high + room
        return cls(Scaling.of(normalizer), Box(jnp.asarray(low), jnp.asarray(high)), variable)

    def encode(self, obs: Float[Array, " obs"], next_obs: Float[Array, " obs"]) -> Float[Array, " obs"]:
        """Coordinates of a next state."""
        return self.scale.normalize(next_obs if self.variable == "next_obs" else next_obs - obs)

    def decode(self, obs: Float[Array, " obs"], x: Float[Array, " obs"]) -> Float[Array, " obs"]:
        """The next state at these coordinates."""
        raw = self.scale.denormalize(x)
        return raw if self.variable == "next_obs" else obs + raw

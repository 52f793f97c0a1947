"""Normalisation statistics of a log: what models need to see their inputs at one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32

from mcetm.data.transitions import Transitions

FLOOR = 1e-6
"""A column whose spread is below this is constant: it is centred, not scaled up to noise."""


@dataclass(frozen=True, eq=False)
class Normalizer:
    """An affine map to mean 0 and standard deviation 1 per column; works on NumPy and JAX arrays."""

    mean: Float32[np.ndarray, " columns"]
    std: Float32[np.ndarray, " columns"]

    @classmethod
    def of(cls, rows: Float32[np.ndarray, "rows columns"]) -> Normalizer:
        """Statistics of these rows, accumulated in double precision."""
        mean = rows.mean(axis=0, dtype=np.float64)
        std = rows.std(axis=0, dtype=np.float64)
        std = np.where(std < FLOOR, 1.0, std)
        return cls(mean.astype(np.float32), std.astype(np.float32))

    def normalize(self, values: Any) -> Any:
        """From raw units to normalised ones."""
        return (values - self.mean) / self.std

    def denormalize(self, values: Any) -> Any:
        """From normalised units to raw ones."""
        return values * self.std + self.mean


def _change(transitions: Transitions) -> Normalizer:
    """Of one step's changes, over the rows that say what came after; of no scale where none does."""
    known = transitions.next_known
    if not known.any():
        width = transitions.obs_dim
        return Normalizer(np.zeros(width, np.float32), np.ones(width, np.float32))
    obs, following = transitions.obs, transitions.next_obs
    return Normalizer.of(following - obs if known.all() else following[known] - obs[known])


@dataclass(frozen=True, eq=False)
class Statistics:
    """Normalizers of everything a transition model takes or predicts.

    Observations and next observations share one map, as they are the same quantity; a model that
    predicts the change uses `change`.
    """

    obs: Normalizer
    action: Normalizer
    change: Normalizer
    reward: Normalizer

    @classmethod
    def of(cls, transitions: Transitions) -> Statistics:
        """Statistics of a log; take them of the training part only."""
        return cls(
            obs=Normalizer.of(transitions.obs),
            action=Normalizer.of(transitions.action),
            change=_change(transitions),
            reward=Normalizer.of(transitions.reward[:, None]),
        )

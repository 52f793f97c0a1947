"""Normalisation statistics of a log: what models need to see their inputs at one scale."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64

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
        return cls.merged([_Summary.of(rows)])

    @classmethod
    def merged(cls, parts: Sequence[_Summary]) -> Normalizer:
        """Of all rows, from means and spreads of their parts."""
        whole = functools.reduce(_Summary.join, parts)
        std = np.where(whole.std < FLOOR, 1.0, whole.std)
        return cls(whole.mean.astype(np.float32), std.astype(np.float32))

    def normalize(self, values: Any) -> Any:
        """From raw units to normalised ones."""
        return (values - self.mean) / self.std

    def denormalize(self, values: Any) -> Any:
        """From normalised units to raw ones."""
        return values * self.std + self.mean


class _Summary(NamedTuple):
    """What some rows have to say of all."""

    rows: int
    mean: Float64[np.ndarray, " columns"]
    std: Float64[np.ndarray, " columns"]

    @classmethod
    def of(cls, rows: Float32[np.ndarray, "rows columns"]) -> _Summary:
        return cls(len(rows), rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64))

    def join(self, other: _Summary) -> _Summary:
        """Of both together (Chan, Golub and LeVeque, 1979)."""
        rows = self.rows + other.rows
        share, apart = other.rows / rows, other.mean - self.mean
        variance = (1 - share) * self.std**2 + share * other.std**2 + share * (1 - share) * apart**2
        return _Summary(rows, self.mean + share * apart, np.sqrt(variance))


def _changes(transitions: Transitions) -> Float32[np.ndarray, "rows obs"]:
    """One step's changes, of the rows that say what came after."""
    known = transitions.next_known
    obs, following = transitions.obs, transitions.next_obs
    return following - obs if known.all() else following[known] - obs[known]


def _change(parts: Sequence[_Summary]) -> Normalizer:
    """Of no scale where no row says what came after."""
    known = [part for part in parts if part.rows]
    if known:
        return Normalizer.merged(known)
    width = len(parts[0].mean)
    return Normalizer(np.zeros(width, np.float32), np.ones(width, np.float32))


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
        kept = vars(transitions)
        if _KEPT not in kept:  # a log does not change, and reading a large one again takes long
            obs, action, change, reward = zip(*map(_summaries, transitions.blocks()), strict=True)
            kept[_KEPT] = cls(
                Normalizer.merged(obs), Normalizer.merged(action), _change(change), Normalizer.merged(reward)
            )
        return kept[_KEPT]


_KEPT = "_statistics"


def _summaries(block: Transitions) -> tuple[_Summary, _Summary, _Summary, _Summary]:
    """Of observations, actions, changes and rewards of one block."""
    changes = _changes(block)
    none = np.zeros(block.obs_dim)
    change = _Summary.of(changes) if len(changes) else _Summary(0, none, none)
    return _Summary.of(block.obs), _Summary.of(block.action), change, _Summary.of(block.reward[:, None])

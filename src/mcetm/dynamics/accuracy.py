"""How well a model predicts episodes that it has not seen: one step on, and open loop.

Open loop it starts from a recorded state and goes on from its own predictions, with the recorded actions. A
model that says that nothing ever changes stands beside it: one that is no better knows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from mcetm.data.transitions import Transitions
from mcetm.dynamics.model import TransitionModel

_AT_ONCE = 200
"""Rows of a call, so that all calls share one program."""
_ROWS = 10 * _AT_ONCE
"""Held-out rows that are predicted one step on, at most."""
_STEPS = 50
"""Steps of an open-loop prediction, at most."""
_LARGEST = float(np.finfo(np.float32).max)
"""The error of what is no number any more."""
_BAND = (10.0, 90.0)
"""Percentiles over stretches that a band holds."""


@dataclass(frozen=True)
class OpenLoop:
    """Errors after 1, 2, … steps, in spreads of the log: root mean square over columns, over stretches."""

    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """The band that holds 80 % of the stretches."""
    still: tuple[float, ...]
    """The median of a model that says that nothing changes."""
    stretches: int


@dataclass(frozen=True)
class Accuracy:
    """Of one model on held-out episodes."""

    columns: tuple[str, ...]
    one_step: tuple[float | None, ...]
    """Root mean square error of each column over that of saying that nothing changes; None where it never
    changes."""
    rows: int
    open_loop: OpenLoop | None
    """None where no row says what came after it."""


def accuracy_of(model: TransitionModel, held_out: Transitions, *, seed: int = 0) -> Accuracy | None:
    """Predict held-out rows one step on and stretches of episodes open loop; None where nothing follows."""
    known = np.flatnonzero(held_out.next_known)
    if not len(known):
        return None
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(known)[:_ROWS])
    change = held_out.next_obs[rows].astype(np.float64) - held_out.obs[rows]
    error = _predicted(model, held_out.obs[rows], held_out.action[rows], seed=seed) - held_out.next_obs[rows]
    size, moved = (np.sqrt(np.mean(np.square(part), axis=0)) for part in (error, change))
    names = held_out.metadata.obs_names or tuple(f"obs_{i}" for i in range(held_out.obs_dim))
    one_step = tuple(float(e / m) if m > 0 else None for e, m in zip(size, moved, strict=True))
    return Accuracy(tuple(names), one_step, len(rows), _open_loop(model, held_out, rng, seed=seed))


def _open_loop(
    model: TransitionModel, held_out: Transitions, rng: np.random.Generator, *, seed: int
) -> OpenLoop | None:
    """Follow stretches that are as long as the longest episode allows, up to `_STEPS`."""
    # A step whose next state is unknown ended its episode, and is no part of a stretch.
    lengths = held_out.episode_lengths - ~held_out.next_known[held_out.episode_ends - 1]
    steps = min(_STEPS, int(lengths.max()))
    if steps < 1:
        return None
    begins = np.concatenate(
        [
            np.arange(start, start + n - steps + 1)
            for start, n in zip(held_out.episode_starts, lengths, strict=True)
        ]
    )
    begins = rng.permutation(begins)[:_AT_ONCE]
    first = held_out.obs[begins].astype(np.float64)
    moves: Bool[np.ndarray, " columns"] = held_out.obs.std(axis=0) > 0
    spread = np.where(moves, held_out.obs.std(axis=0), 1.0)
    distance = lambda found, truth: np.sqrt(  # noqa: E731
        np.mean(np.square((found.astype(np.float64) - truth) / spread)[:, moves], axis=1)
    )
    state, own, still = first.astype(np.float32), [], []
    for t in range(steps):
        state = _predicted(model, state, held_out.action[begins + t], seed=seed + t).astype(np.float32)
        truth = held_out.next_obs[begins + t]
        own.append(distance(state, truth))
        still.append(distance(first, truth))
    if not moves.any():
        return None
    found = np.where(np.isfinite(own), own, _LARGEST)
    low, high = np.percentile(found, _BAND, axis=1)
    plain = lambda values: tuple(float(value) for value in values)  # noqa: E731
    return OpenLoop(
        plain(np.median(found, axis=1)),
        plain(low),
        plain(high),
        plain(np.median(still, axis=1)),
        len(begins),
    )


def _predicted(
    model: TransitionModel, obs: np.ndarray, action: np.ndarray, *, seed: int
) -> Float[np.ndarray, "rows obs"]:
    """Point predictions, in calls of one size; the last call repeats rows to fill up."""
    found: list[Any] = []
    for start in range(0, len(obs), _AT_ONCE):
        rows = np.resize(np.arange(start, min(start + _AT_ONCE, len(obs))), _AT_ONCE)
        key = jax.random.fold_in(jax.random.key(seed), start)
        found.append(np.asarray(model.predict(obs[rows], action[rows], key=key), np.float64))
    return np.concatenate(found)[: len(obs)]

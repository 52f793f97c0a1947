"""What few runs allow to be said: interquartile means, probabilities of improvement, performance profiles.

After Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (NeurIPS 2021).
Scores come as strata: one array for each dataset, one number for each seed. The stratified bootstrap draws
seeds within each dataset, never from one dataset to another, so that an interval shows the chance in the
seeds and not the difference between datasets.

Seeds that share a model of the world are not independent: what is by chance good about the model is good for
all of them. `Worlds` says which share one; the bootstrap then draws worlds first, and seeds within them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Worlds:
    """Scores of one dataset whose seeds learned in several worlds."""

    scores: np.ndarray
    world: np.ndarray
    """Which world each score is from: any numbers, equal for those that share one."""

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.world):
            raise ValueError(f"{len(self.scores)} scores cannot be from {len(self.world)} worlds")


Strata = Sequence[np.ndarray | Worlds]
"""Scores by dataset; datasets may have different numbers of seeds."""

CONFIDENCE = 0.95
RESAMPLES = 10_000
_BLOCK = 1_000_000  # scores resampled at once, to bound the memory


@dataclass(frozen=True)
class Interval:
    """A number and its interval; no interval where some dataset has a single seed."""

    value: float
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"value": self.value, "interval": None if self.low is None else [self.low, self.high]}


@dataclass(frozen=True)
class Profile:
    """Share of runs above each threshold, with a band for each threshold by itself."""

    thresholds: np.ndarray
    share: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """Mean of the middle half along the last axis; fewer than four numbers are all kept."""
    from scipy.stats import trim_mean

    return np.asarray(trim_mean(scores, 0.25, axis=-1))


def mean(scores: np.ndarray) -> np.ndarray:
    """Mean along the last axis."""
    return np.asarray(np.mean(scores, axis=-1))


def bootstrap(
    strata: Strata,
    statistic: Callable[[np.ndarray], np.ndarray] = interquartile_mean,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A statistic of all runs on all datasets, with the percentile interval of the stratified bootstrap."""
    value = float(statistic(pooled(strata)))
    if not can_resample(strata):
        return Interval(value)
    draws = np.concatenate([statistic(block) for block in _blocks(strata, resamples, seed)])
    return Interval(value, *_interval(draws, confidence))


def probability_of_improvement(
    first: Strata,
    second: Strata,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """How likely a run of the first beats one of the second on the same dataset, mean over datasets.

    On each dataset this is Mann and Whitney's U over the number of pairs: ties count half.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} datasets cannot be compared with {len(second)}")
    pairs = list(zip(first, second, strict=True))
    value = float(np.mean([_wins(_scores(x), _scores(y)) for x, y in pairs]))
    if not can_resample([*first, *second]):
        return Interval(value)
    rng = np.random.default_rng(seed)
    total = np.zeros(resamples)
    for x, y in pairs:
        total += _wins(_draw(x, resamples, rng), _draw(y, resamples, rng))
    return Interval(value, *_interval(total / len(first), confidence))


def performance_profile(
    strata: Strata,
    thresholds: np.ndarray,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = 2_000,
    seed: int = 0,
) -> Profile:
    """Share of runs, over datasets and seeds, whose score is above each threshold."""
    share = _above(pooled(strata), thresholds)
    if not can_resample(strata):
        return Profile(thresholds, share)
    draws = np.concatenate([_above(block, thresholds) for block in _blocks(strata, resamples, seed)])
    low, high = np.quantile(draws, _tails(confidence), axis=0)
    return Profile(thresholds, share, low, high)


def resample(strata: Strata, count: int, *, seed: int = 0) -> np.ndarray:
    """Pooled scores of `count` resamples: seeds are drawn with replacement within each dataset."""
    return np.concatenate(list(_blocks(strata, count, seed)))


def can_resample(strata: Strata) -> bool:
    """Whether every dataset has at least two seeds, or two worlds; one would seem to have no spread."""
    return all(
        len(scores if isinstance(scores, np.ndarray) else np.unique(scores.world)) > 1 for scores in strata
    )


def pooled(strata: Strata) -> np.ndarray:
    """All scores of all datasets."""
    return np.concatenate([_scores(scores) for scores in strata])


def _scores(scores: np.ndarray | Worlds) -> np.ndarray:
    return scores if isinstance(scores, np.ndarray) else scores.scores


def _blocks(strata: Strata, count: int, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    size = max(1, _BLOCK // len(pooled(strata)))
    for start in range(0, count, size):
        rows = min(size, count - start)
        yield np.concatenate([_draw(scores, rows, rng) for scores in strata], axis=1)


def _draw(scores: np.ndarray | Worlds, count: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(scores, np.ndarray):
        return scores[rng.integers(len(scores), size=(count, len(scores)))]
    _, place, sizes = np.unique(scores.world, return_inverse=True, return_counts=True)
    by_world = scores.scores[np.argsort(place, kind="stable")]
    starts = np.cumsum(sizes) - sizes
    # Each place of a world is filled by a drawn world, and each score in it by one of that world's.
    drawn = rng.integers(len(sizes), size=(count, len(sizes)))[:, np.sort(place)]
    return by_world[starts[drawn] + rng.integers(sizes[drawn])]


def _wins(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Share of pairs that the first wins, along the last axes; a tie is half a win."""
    x, y = first[..., :, None], second[..., None, :]
    return np.asarray((np.mean(x > y, axis=(-2, -1)) + np.mean(x >= y, axis=(-2, -1))) / 2)


def _above(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Thresholds on a new last axis; one at a time, as all comparisons at once would not fit."""
    return np.stack([np.mean(scores > threshold, axis=-1) for threshold in thresholds], axis=-1)


def _interval(draws: np.ndarray, confidence: float) -> tuple[float, float]:
    low, high = np.quantile(draws, _tails(confidence))
    return float(low), float(high)


def _tails(confidence: float) -> list[float]:
    return [(1 - confidence) / 2, (1 + confidence) / 2]

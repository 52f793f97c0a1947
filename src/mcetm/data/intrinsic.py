"""Intrinsic dimension: how many numbers a state really has, estimated from nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

_DISCARD = 0.1
"""Share of the largest neighbour ratios left out, where the estimate is least reliable."""


@dataclass(frozen=True)
class IntrinsicDimension:
    """TwoNN estimate, its spread over independent subsamples, and the size of each."""

    estimate: float
    spread: float
    samples: int


def intrinsic_dimension(
    points: Float32[np.ndarray, "rows columns"], *, samples: int = 2000, repeats: int = 5, seed: int = 0
) -> IntrinsicDimension | None:
    """TwoNN (Facco et al., Scientific Reports 7, 2017) on standardised points.

    The ratio of the distances to a point's second and first neighbour follows a Pareto law
    whose exponent is the dimension, whatever the density. Random subsamples keep consecutive
    states of a trajectory from being each other's neighbours, which would look one-dimensional;
    a log too short to be thinned (under ten rows for each sample) is therefore read with care.
    None where fewer than 20 distinct points remain.
    """
    if not len(points):
        return None
    spread = points.std(axis=0, dtype=np.float64)  # squares of large numbers overflow in single precision
    scaled = points[:, spread > 0] / spread[spread > 0]
    rng = np.random.default_rng(seed)
    samples = min(samples, len(scaled) // 2)  # half at most, so that the repeats differ
    estimates = []
    for _ in range(repeats):
        chosen = scaled[rng.choice(len(scaled), samples, replace=False)]
        estimate = _two_nn(np.unique(chosen, axis=0))
        if estimate is not None:
            estimates.append(estimate)
    if not estimates:
        return None
    return IntrinsicDimension(float(np.mean(estimates)), float(np.std(estimates)), samples)


def _two_nn(points: np.ndarray) -> float | None:
    from scipy.spatial import KDTree

    if len(points) < 20 or points.shape[1] == 0:
        return None
    distances, _ = KDTree(points).query(points, k=3)
    ratios = np.sort(distances[:, 2] / distances[:, 1])
    # -log(1 - F) = d · log(ratio): a line through the origin, fitted without the upper tail.
    kept = int(len(ratios) * (1.0 - _DISCARD))
    x = np.log(ratios[:kept])
    y = -np.log1p(-np.arange(1, kept + 1) / (len(ratios) + 1))
    denominator = float(x @ x)
    return float(x @ y) / denominator if denominator > 0 else None

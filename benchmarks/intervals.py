"""How often the 95 % intervals of `mcetm compare` hold the truth, by seeds and datasets."""

from __future__ import annotations

import numpy as np

from mcetm.evaluation.statistics import bootstrap, interquartile_mean
from record import record

TRIALS = 2000
SPREAD = 5.0


def coverage(datasets: int, seeds: int) -> float:
    """Share of trials whose interval of the interquartile mean holds its true value.

    Scores are normal around the level of their dataset, with the same spread everywhere.
    """
    rng = np.random.default_rng(0)
    levels = np.linspace(20.0, 100.0, datasets) if datasets > 1 else np.array([60.0])

    def draw(count: int) -> list[np.ndarray]:
        return [level + SPREAD * rng.normal(size=count) for level in levels]

    truth = interquartile_mean(np.concatenate(draw(200_000)))
    held = 0
    for trial in range(TRIALS):
        found = bootstrap(draw(seeds), resamples=500, seed=trial)
        held += found.low is not None and found.high is not None and bool(found.low <= truth <= found.high)
    return held / TRIALS


def main() -> None:
    """Every combination."""
    result = {
        f"{datasets} datasets": {
            f"{seeds} seeds": round(coverage(datasets, seeds), 2) for seeds in (3, 5, 10, 20)
        }
        for datasets in (1, 4, 12)
    }
    record("intervals", result)


if __name__ == "__main__":
    main()

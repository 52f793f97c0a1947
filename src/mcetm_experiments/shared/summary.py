"""Mean and spread over seeds, as numbers and as a table shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def over_seeds(measures: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Mean, standard deviation (None of one seed) and values of every measure; its last axis is the seeds."""
    summary = {}
    for name, values in measures.items():
        array = np.asarray(values, float)
        spread = array.std(axis=-1, ddof=1).tolist() if array.shape[-1] > 1 else None
        summary[name] = {"mean": array.mean(axis=-1).tolist(), "std": spread, "seeds": array.tolist()}
    return summary


def cell(mean: float, spread: float | None) -> str:
    """Mean ± spread, as many digits as matter."""
    return f"{mean:.3g}" if spread is None else f"{mean:.3g} ± {spread:.1g}"

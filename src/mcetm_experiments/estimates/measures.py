"""How good estimates are: error, order, regret, and how often an interval holds the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from mcetm.evaluation import spearman

Values = Float[np.ndarray, " policies"]


def measures(truth: Values, error: Values, estimates: Values) -> dict[str, float]:
    """Of one estimator on one log: errors and regrets as shares of the range of true returns."""
    span = float(truth.max() - truth.min()) or 1.0
    found = {
        "absolute_error": float(np.mean(np.abs(estimates - truth))),
        "relative_error": float(np.mean(np.abs(estimates - truth))) / span,
        "regret_1": regret(truth, estimates, 1),
        "regret_5": regret(truth, estimates, 5),
    }
    tied = with_ties(truth, error)
    if len(truth) > 2 and len(np.unique(tied)) > 1:
        found["spearman"] = float(spearman(tied, estimates))
    return found


def regret(truth: Values, estimates: Values, count: int) -> float:
    """How much worse the best of the `count` with the highest estimates is than the best, of the range."""
    span = float(truth.max() - truth.min()) or 1.0
    picked = np.argsort(-estimates, kind="stable")[:count]
    return float(truth.max() - truth[picked].max()) / span


def with_ties(truth: Values, error: Values) -> Values:
    """True returns where those that differ by less than twice their error are one."""
    order = np.argsort(truth)
    found = truth.astype(float).copy()
    group: list[int] = []
    for i in order:
        if group and truth[i] - truth[group[0]] > 2.0 * float(np.hypot(error[i], error[group[0]])):
            group = []
        group.append(int(i))
        found[group] = truth[group].mean()
    return found


def coverage(hits: Sequence[bool]) -> dict[str, Any]:
    """How often, of how many, with the 90 % binomial interval (Clopper and Pearson)."""
    from scipy.stats import beta

    count, hit = len(hits), int(sum(hits))
    if not count:
        return {"cases": 0, "share": None, "interval": None}
    low = float(beta.ppf(0.05, hit, count - hit + 1)) if hit else 0.0
    high = float(beta.ppf(0.95, hit + 1, count - hit)) if hit < count else 1.0
    return {"cases": count, "share": hit / count, "interval": [low, high]}

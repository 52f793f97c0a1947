"""How much a score of distrust knows: ranks against errors, and what is gained by heeding it.

A score is high where a prediction should not be trusted. Nothing here looks at its scale but `pearson`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, " n"]


def auroc(low: Values, high: Float[np.ndarray, " m"]) -> float:
    """How surely a value of `high` exceeds one of `low`: 1 always, ½ by chance; ties count half."""
    from scipy.stats import mannwhitneyu

    if not len(low) or not len(high):
        return float("nan")
    return float(mannwhitneyu(high, low).statistic / (len(low) * len(high)))


def pearson(first: Values, second: Values) -> float:
    """Linear correlation; NaN where one of them does not vary."""
    first, second = (np.asarray(values, np.float64) for values in (first, second))
    if len(first) < 2 or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return float("nan")
    first, second = first - first.mean(), second - second.mean()
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def spearman(first: Values, second: Values) -> float:
    """Correlation of ranks, ties at their mean rank; NaN where one of them does not vary."""
    from scipy.stats import rankdata

    return pearson(np.asarray(rankdata(first)), np.asarray(rankdata(second)))


def risk_coverage(score: Values, error: Values) -> tuple[Values, Values]:
    """Mean error of the rows with the lowest scores, for every share of rows that is accepted.

    Rows that tie in score are accepted in no order: each counts as the mean error of its tie.
    """
    if not len(score):
        raise ValueError("a curve needs at least one row")
    _, group = np.unique(score, return_inverse=True)
    counts = np.bincount(group)
    means = np.bincount(group, weights=np.asarray(error, np.float64)) / counts
    accepted = np.arange(1, len(score) + 1)
    return accepted / len(score), np.cumsum(np.repeat(means, counts)) / accepted


def risk_area(score: Values, error: Values) -> float:
    """Area under the risk-coverage curve: the mean error of what is accepted, over all shares alike."""
    return float(risk_coverage(score, error)[1].mean())


def excess_risk(score: Values, error: Values) -> float:
    """The area's place between that of the errors themselves as a score (0) and that of chance (1)."""
    best, chance = risk_area(error, error), float(np.mean(error))
    if best == chance:
        return float("nan")
    return (risk_area(score, error) - best) / (chance - best)


def false_alarms(known: Values, fresh: Float[np.ndarray, " m"], rate: float) -> float:
    """Share of fresh scores above the threshold that a share `rate` of the known ones exceeds."""
    return float(np.mean(np.asarray(fresh) > np.quantile(known, 1.0 - rate)))

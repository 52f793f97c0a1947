"""Returns in an environment, normalised scores and their statistics."""

from mcetm.evaluation.comparison import Comparison, Curve, Dataset, Entry, Summary, compare, pool
from mcetm.evaluation.detection import (
    auroc,
    excess_risk,
    false_alarms,
    pearson,
    risk_area,
    risk_coverage,
    spearman,
)
from mcetm.evaluation.online import bandit_curve, expected_best
from mcetm.evaluation.statistics import (
    Interval,
    Profile,
    Worlds,
    bootstrap,
    interquartile_mean,
    mean,
    performance_profile,
    probability_of_improvement,
)

__all__ = [
    "Comparison",
    "Curve",
    "Dataset",
    "Entry",
    "Interval",
    "Profile",
    "Summary",
    "Worlds",
    "auroc",
    "bandit_curve",
    "bootstrap",
    "compare",
    "excess_risk",
    "expected_best",
    "false_alarms",
    "interquartile_mean",
    "mean",
    "pearson",
    "performance_profile",
    "pool",
    "probability_of_improvement",
    "risk_area",
    "risk_coverage",
    "spearman",
]

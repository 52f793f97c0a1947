"""Returns in an environment, normalised scores and their statistics."""

from mcetm.evaluation.detection import (
    auroc,
    excess_risk,
    false_alarms,
    pearson,
    risk_area,
    risk_coverage,
    spearman,
)

__all__ = ["auroc", "excess_risk", "false_alarms", "pearson", "risk_area", "risk_coverage", "spearman"]

"""A policy's return without a simulator: three estimators, and whether each can be believed."""

from mcetm.estimates.asked import Asked
from mcetm.estimates.behaviour import BehaviourSettings, fit_behaviour
from mcetm.estimates.doubly_robust import DoublyRobustSettings
from mcetm.estimates.estimate import (
    CONFIDENCE,
    LABELS,
    Estimate,
    Estimates,
    PolicyEstimates,
    load_estimates,
)
from mcetm.estimates.estimating import EstimateSettings, estimate_policies
from mcetm.estimates.fitted_q import FQESettings
from mcetm.estimates.model_based import ModelBasedSettings
from mcetm.estimates.quantity import Quantity
from mcetm.estimates.verdicts import VerdictSettings

__all__ = [
    "CONFIDENCE",
    "LABELS",
    "Asked",
    "BehaviourSettings",
    "DoublyRobustSettings",
    "Estimate",
    "EstimateSettings",
    "Estimates",
    "FQESettings",
    "ModelBasedSettings",
    "PolicyEstimates",
    "Quantity",
    "VerdictSettings",
    "estimate_policies",
    "fit_behaviour",
    "load_estimates",
]

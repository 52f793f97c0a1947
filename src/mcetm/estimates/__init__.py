"""A policy's return without a simulator: three estimators, and whether each can be believed."""

from mcetm.estimates.asked import Asked
from mcetm.estimates.behaviour import BehaviourSettings, fit_behaviour
from mcetm.estimates.case import EstimateSettings
from mcetm.estimates.choice import Candidate, Choice, choose
from mcetm.estimates.doubly_robust import DoublyRobustSettings
from mcetm.estimates.estimate import (
    CONFIDENCE,
    LABELS,
    Estimate,
    Estimates,
    PolicyEstimates,
    load_estimates,
)
from mcetm.estimates.estimating import estimate_policies
from mcetm.estimates.fitted_q import FQESettings
from mcetm.estimates.model_based import ModelBasedSettings
from mcetm.estimates.plan import EpisodePlan, begin_plan, with_measured
from mcetm.estimates.quantity import Quantity
from mcetm.estimates.tournament import Tournament, hold_tournament
from mcetm.estimates.verdicts import VerdictSettings

__all__ = [
    "CONFIDENCE",
    "LABELS",
    "Asked",
    "BehaviourSettings",
    "Candidate",
    "Choice",
    "DoublyRobustSettings",
    "EpisodePlan",
    "Estimate",
    "EstimateSettings",
    "Estimates",
    "FQESettings",
    "ModelBasedSettings",
    "PolicyEstimates",
    "Quantity",
    "Tournament",
    "VerdictSettings",
    "begin_plan",
    "choose",
    "estimate_policies",
    "fit_behaviour",
    "hold_tournament",
    "load_estimates",
    "with_measured",
]

"""The model-based estimate of each policy of a case."""

from __future__ import annotations

import numpy as np

from mcetm.estimates.case import Case, known
from mcetm.estimates.estimate import IMAGINED, Estimate, interval_of
from mcetm.estimates.model_based import bounded, missed, spread_of


def estimate_by_model(case: Case) -> list[Estimate]:
    """The mean return of imagined episodes, over members and first states."""
    config, quantity = case.settings.model_based, case.quantity
    checked = missed(case.world, case.held_out, quantity, config, case.bounds, seed=case.seed)
    missing = None if checked is None else checked[0]
    found = []
    for one in case.questions:
        rolled = one.rollouts
        value = float(rolled.returns.mean())
        over_members, over_starts = spread_of(rolled)
        spread = float(np.hypot(over_members, over_starts))
        members = len(rolled.returns)
        interval = interval_of(value, spread, members - 1, missing or 0.0, case.unknown(one))
        low, high = bounded(rolled, case.bounds)
        details = {
            "steps_outside": one.outside,
            "episodes_that_leave": float(np.mean(rolled.leaves < quantity.horizon)),
            "median_first_step_outside": float(np.median(rolled.leaves)),
            "trusted_part": float(rolled.trusted.mean()),
            "least_if_the_rest_is_worst": low,
            "most_if_the_rest_is_best": high,
            "spread_over_members": over_members,
            "spread_over_first_states": over_starts,
            IMAGINED: float(rolled.returns.std(axis=1).mean()),
            "mean_length": float(rolled.lengths.mean()),
            **known(missed_of_the_log=missing, actions_inside=one.inside, actions_surprise=one.surprise),
        }
        verdict = case.believe(one, missing, interval)
        found.append(case.estimate("model", one, value, interval, verdict, details, config))
    return found

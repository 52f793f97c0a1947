"""Fitted Q evaluation of all policies of a case and, as a check, of the log itself."""

from __future__ import annotations

import numpy as np

from mcetm.estimates.case import Case, known
from mcetm.estimates.estimate import Estimate, interval_of
from mcetm.estimates.fitted_q import bellman_residual, bootstrap_weights, fit_critics
from mcetm.estimates.quantity import episode_of_rows


def estimate_by_critics(case: Case) -> list[Estimate]:
    """The value at the first states, over bootstrap replicas and critics."""
    config, log, quantity = case.settings.fqe, case.log, case.quantity
    following, usable = case.next_actions
    own = len(case.questions)  # the log itself, the last of them
    replicas, critics = config.replicas, config.critics
    policy = np.repeat(np.arange(own + 1), replicas * critics)
    drawn = bootstrap_weights(log.num_episodes, replicas, seed=case.seed)
    weights = np.tile(np.repeat(drawn, critics, axis=0), (own + 1, 1))
    fitted = fit_critics(
        log,
        following,
        usable,
        quantity,
        config,
        policy=policy,
        weights=weights * ~case.held,
        tied=[own],
        seed=case.seed,
    )
    rows = case.held[episode_of_rows(log)] if case.held.any() else np.ones(len(log), bool)
    residual, left_over = bellman_residual(
        fitted, case.held_out, following[:, rows], usable[:, rows], policy, [own], seed=case.seed
    )
    starts = log.obs[log.episode_starts]
    first = [one.policy.actions(starts, following.shape[2], seed=case.seed) for one in case.questions]
    taken = log.action[log.episode_starts][:, None]
    actions = np.stack([*first, np.broadcast_to(taken, (len(starts), following.shape[2], log.action_dim))])
    values = fitted.values(starts, actions, policy, quantity.horizon)
    whole = quantity.whole(log)
    shape = (own + 1, replicas, critics)
    by_member = ((values * weights).sum(axis=1) / weights.sum(axis=1)).reshape(shape)
    # The log's own return is known of whole episodes, and its critics are asked at their first states.
    missing = None
    if whole.any():
        error = (values[policy == own].mean(axis=0) - quantity.of_episodes(log))[whole]
        missing = float(error.mean())
    found = []
    for i, one in enumerate(case.questions):
        by_replica = by_member[i].mean(axis=1)
        value = float(by_replica.mean())
        spread = float(by_replica.std(ddof=1)) if replicas > 1 else 0.0
        over_critics = float(by_member[i].std(axis=1, ddof=1).mean()) if critics > 1 else 0.0
        # What it is known to be wrong by: on the log's own return, and in its own equation.
        over = float(left_over[policy == i].mean())
        wrong = float(np.hypot(missing or 0.0, over))
        spread = max(spread, over_critics / np.sqrt(critics))
        interval = interval_of(value, spread, replicas - 1, wrong, case.unknown(one))
        worse = None if missing is None else max(missing, over, key=abs)
        details = {
            "bellman_residual": float(residual[policy == i].mean()),
            "bellman_residual_of_an_episode": over,
            "spread_over_critics": over_critics,
            "spread_over_replicas": spread,
        }
        details |= known(missed_of_the_log=missing, actions_inside=one.inside, actions_surprise=one.surprise)
        verdict = case.believe(one, worse, interval)
        found.append(case.estimate("fqe", one, value, interval, verdict, details, config))
    return found

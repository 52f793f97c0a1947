"""The doubly robust estimate of each policy of a case whose weights are worth enough episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcetm.estimates.behaviour import fit_behaviour
from mcetm.estimates.case import Case
from mcetm.estimates.doubly_robust import corrected, folds_of, weights_of
from mcetm.estimates.estimate import Estimate, interval_of
from mcetm.estimates.fitted_q import fit_critics
from mcetm.estimates.quantity import episode_of_rows, times

_FEWEST = 0.1
"""Episodes below which it does not matter how many."""


def estimate_by_weights(case: Case) -> list[Estimate]:
    """Critics corrected by weighted rewards, cross-fitted over folds of episodes."""
    config, log, quantity = case.settings.doubly_robust, case.log, case.quantity
    fold = folds_of(log, config.folds)
    masks = np.stack([fold != k for k in range(fold.max() + 1)]).astype(float)
    if len(masks) < 2:
        words = ["the log has one episode, and cross-fitting needs two"]
        return [
            case.estimate("doubly-robust", one, None, None, (False, words), {}, config)
            for one in case.questions
        ]
    behaviour = fit_behaviour(log, config.behaviour, masks, seed=case.seed)
    weighed = [
        weights_of(one.policy, log, behaviour, fold, quantity, config.kernel) for one in case.questions
    ]
    effective = [weights.effective for weights, _ in weighed]
    kept = [i for i, sizes in enumerate(effective) if sizes.min() >= config.least]
    values = _cross_fitted(case, kept, masks, fold) if kept else {}
    found = []
    for i, one in enumerate(case.questions):
        least = float(effective[i].min())
        worst = int(np.argmax(effective[i] < config.least)) if i not in kept else len(effective[i])
        details = {"effective_episodes": least, "steps_with_enough": float(worst)}
        if one.policy.deterministic:
            details["kernel"] = float(np.mean(weighed[i][1]))
        if i not in kept:
            words = [
                f"refused: the weights are worth {_shown(least)} of {log.num_episodes:,} episodes, "
                f"and {config.least:g} are needed; they are too few from step {worst + 1} on"
            ]
            found.append(case.estimate("doubly-robust", one, None, None, (False, words), details, config))
            continue
        value, spread = corrected(
            weighed[i][0], log, quantity, *values[i], resamples=config.resamples, seed=case.seed
        )
        interval = interval_of(value, spread, max(int(least) - 1, 1), 0.0)
        # Beyond the log's longest episode it is the critic's value alone, which nothing corrects.
        believed, reasons = case.believe(one, 0.0 if quantity.whole(log).any() else None, interval)
        if believed:
            reasons = [f"its weights are worth {least:.3g} episodes at least", *reasons[:-1]]
        if one.policy.deterministic:
            reasons = [*reasons, "it is that of the policy with some noise on its actions"]
        verdict = (believed, reasons)
        found.append(case.estimate("doubly-robust", one, value, interval, verdict, details, config))
    return found


def _shown(episodes: float) -> str:
    """How many episodes, without the powers of ten that products over an episode have."""
    return f"{episodes:.3g}" if episodes >= _FEWEST else f"less than {_FEWEST:g}"


def _cross_fitted(
    case: Case, kept: Sequence[int], masks: np.ndarray, fold: np.ndarray
) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """V(s₀, H) of each episode, Q and V of each row, by critics that have not seen the episode."""
    log, quantity = case.log, case.quantity
    following, usable = (part[list(kept)] for part in case.next_actions)
    folds = len(masks)
    policy = np.repeat(np.arange(len(kept)), folds)
    fitted = fit_critics(
        log,
        following,
        usable,
        quantity,
        case.settings.fqe,
        policy=policy,
        weights=np.tile(masks, (len(kept), 1)),
        seed=case.seed,
    )
    samples = following.shape[2]
    left = np.clip(quantity.horizon - times(log), 1, quantity.horizon)
    shape = (len(kept), len(log), 1, log.action_dim)
    now = fitted.values(log.obs, np.broadcast_to(log.action[None, :, None], shape), policy, left)
    then = fitted.values(log.next_or_same, following, policy, np.maximum(left - 1, 1)) * (left > 1)
    starts = log.obs[log.episode_starts]
    actions = np.stack([case.questions[i].policy.actions(starts, samples, seed=case.seed) for i in kept])
    first = fitted.values(starts, actions, policy, quantity.horizon)
    rows, episodes = np.arange(len(log)), np.arange(log.num_episodes)
    own_row = fold[episode_of_rows(log)]
    found = {}
    for place, i in enumerate(kept):
        mine = slice(place * folds, (place + 1) * folds)
        found[i] = (
            first[mine][fold, episodes],
            now[mine][own_row, rows],
            then[mine][own_row, rows],
        )
    return found

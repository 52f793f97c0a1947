"""Estimates of several policies from one log: what they share is learned once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from mcetm.console import one_line
from mcetm.data.transitions import Transitions
from mcetm.dynamics.gaussian import GaussianEnsemble
from mcetm.dynamics.world import World, WorldSettings
from mcetm.errors import UserError
from mcetm.estimates.asked import Asked, next_actions
from mcetm.estimates.behaviour import fit_behaviour
from mcetm.estimates.doubly_robust import DoublyRobustSettings, corrected, folds_of, weights_of
from mcetm.estimates.estimate import Estimate, Estimates, Estimator, PolicyEstimates, interval_of
from mcetm.estimates.fitted_q import (
    FQESettings,
    bellman_residual,
    bootstrap_weights,
    fit_critics,
    reward_range,
)
from mcetm.estimates.model_based import ModelBasedSettings, Rollouts, bounded, missed, roll_out, spread_of
from mcetm.estimates.quantity import Quantity, episode_of_rows, times
from mcetm.estimates.verdicts import Evidence, Scale, VerdictSettings, judge
from mcetm.settings import Fraction, settings, to_plain
from mcetm.tasks.registry import get_task

_NAME = 2000
"""Characters of a name that a file keeps."""
_ROWS = 4096
"""Held-out states at most that a policy's actions are looked at in."""


@settings
class EstimateSettings:
    """How returns are estimated without a simulator."""

    estimators: Annotated[tuple[Estimator, ...], Field(min_length=1)] = ("fqe", "model", "doubly-robust")
    """Which estimators are asked."""
    discount: Annotated[float, Field(strict=True, gt=0.0, le=1.0)] = 1.0
    """γ: 1 is the undiscounted return, the scale of the log's episode returns."""
    horizon: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    """Steps of an episode at most. None: the task's limit, or the longest episode of the log."""
    holdout: Fraction = 0.1
    """Share of episodes that critics and models are checked on."""
    verdict: VerdictSettings = field(default_factory=VerdictSettings)
    """When an estimate is believed."""
    fqe: FQESettings = field(default_factory=FQESettings)
    """Fitted Q evaluation."""
    model_based: ModelBasedSettings = field(default_factory=ModelBasedSettings)
    """The model-based estimate."""
    doubly_robust: DoublyRobustSettings = field(default_factory=DoublyRobustSettings)
    """The doubly robust estimate."""
    model: GaussianEnsemble = field(
        default_factory=lambda: GaussianEnsemble(members=5, elites=5, bootstrap=True)
    )
    """The transition model that is trained where no world is given. It is not the one that a policy was
    trained in: a policy goes where its own model errs in its favour."""
    world: WorldSettings = field(default_factory=WorldSettings)
    """Reward, termination and trust region around it."""


@dataclass(frozen=True)
class _Case:
    """All that estimators share."""

    log: Transitions
    held: np.ndarray
    """Which episodes are held out."""
    quantity: Quantity
    scale: Scale
    settings: EstimateSettings
    world: World
    bounds: tuple[float, float]
    seed: int

    @functools.cached_property
    def held_out(self) -> Transitions:
        """Held-out episodes; the whole log where it is a single one."""
        return self.log.select_episodes(np.flatnonzero(self.held)) if self.held.any() else self.log

    def estimate(
        self,
        estimator: Estimator,
        policy: Asked,
        value: float | None,
        interval: list[float] | None,
        verdict: tuple[bool, list[str]],
        details: dict[str, float],
        own: Any,
    ) -> Estimate:
        """An estimate of this case; no interval goes beyond what the log's rewards allow."""
        if value is not None and interval is not None:
            least, most = (float(self.quantity.lengths[-1]) * bound for bound in self.bounds)
            interval = [min(max(interval[0], least), value), max(min(interval[1], most), value)]
        return Estimate(
            estimator=estimator,
            policy=one_line(policy.name, _NAME),
            value=value,
            interval=interval,
            believed=verdict[0],
            reasons=verdict[1],
            quantity=self.quantity.words,
            horizon=self.quantity.horizon,
            discount=self.quantity.discount,
            log=one_line(self.log.metadata.source, _NAME),
            log_checksum=self.log.checksum,
            log_return=self.scale.mean,
            log_spread=self.scale.spread,
            details=details,
            settings={**to_plain(own), "seed": self.seed, "verdict": to_plain(self.settings.verdict)},
        )


def estimate_policies(
    asked: Sequence[Asked],
    log: Transitions,
    config: EstimateSettings | None = None,
    *,
    world: World | None = None,
    seed: int = 0,
) -> Estimates:
    """What each estimator says of each policy."""
    config = config or EstimateSettings()
    log.require("reward", "action")
    if len(log) < 2:
        raise UserError(f"{log.metadata.source} has too few rows to estimate anything from.")
    if len({policy.name for policy in asked}) < len(asked):
        raise UserError("Two policies have one name; estimates could not be told apart.")
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    quantity = Quantity.of(log, task, discount=config.discount, horizon=config.horizon)
    returns, whole = quantity.of_episodes(log), quantity.whole(log)
    scale = Scale.of(returns[whole] if whole.any() else returns, ends=bool(log.terminated.any()))
    held = _held_out(log, config.holdout, seed)
    if world is None:
        train, holdout = log.split(config.holdout, seed=seed)
        if held.any():
            train, holdout = (log.select_episodes(np.flatnonzero(part)) for part in (~held, held))
        model = config.model.fit(train, holdout=holdout, seed=seed)
        world = World.of(model, train, holdout=holdout, config=config.world, task=task, seed=seed)
    case = _Case(log, held, quantity, scale, config, world, reward_range(log), seed)
    inside = [_actions_inside(case, policy) for policy in asked]
    rollouts = [
        roll_out(case.world, policy, log, quantity, config.model_based, case.bounds, seed=seed)
        for policy in asked
    ]
    makers = {"fqe": _by_critics, "model": _by_model, "doubly-robust": _doubly_robust}
    given: tuple[Any, ...] = ()
    if {"fqe", "doubly-robust"} & set(config.estimators):
        given = next_actions(asked, log, config.fqe.samples, seed=seed)
    found = {name: makers[name](case, asked, inside, rollouts, given) for name in config.estimators}
    return Estimates(
        tuple(
            PolicyEstimates(policy.name, tuple(found[name][i] for name in config.estimators))
            for i, policy in enumerate(asked)
        ),
        log.metadata.source,
        scale.mean,
        quantity.words,
    )


def _held_out(log: Transitions, share: float, seed: int) -> np.ndarray:
    """Which episodes are held out: about the share, at least one and never all; none of a single one."""
    held = np.zeros(log.num_episodes, bool)
    count = min(max(1, round(share * log.num_episodes)), log.num_episodes - 1)
    held[np.random.default_rng(seed).permutation(log.num_episodes)[:count]] = True
    return held


def _actions_inside(case: _Case, policy: Asked) -> float | None:
    """Share of held-out states in which the policy's action is inside the trust region."""
    if case.world.trust is None:
        return None
    rows = np.random.default_rng(case.seed).permutation(len(case.held_out))[:_ROWS]
    obs = case.held_out.obs[rows]
    score = case.world.pair_score(obs, policy.actions(obs, 1, seed=case.seed)[:, 0])
    return float(np.mean(np.asarray(score) <= float(case.world.trust.pair_limit)))


def _known(**numbers: float | None) -> dict[str, float]:
    """Those numbers that there are."""
    return {name: value for name, value in numbers.items() if value is not None}


def _unknown(case: _Case, found: Rollouts) -> float:
    """What an episode may earn otherwise than estimated in the part of it that nothing in the log is like."""
    return case.scale.stake * float(found.outside.mean())


def _half(interval: list[float]) -> float:
    return 0.5 * (interval[1] - interval[0])


def _steps_inside(case: _Case, found: Rollouts) -> float | None:
    return None if case.world.trust is None else 1.0 - float(found.outside.mean())


def _by_critics(
    case: _Case,
    asked: Sequence[Asked],
    inside: Sequence[float | None],
    rollouts: Sequence[Rollouts],
    given: tuple[Any, ...],
) -> list[Estimate]:
    """Fitted Q evaluation of all policies and, as a check, of the log itself."""
    config, log, quantity = case.settings.fqe, case.log, case.quantity
    following, usable = given
    own = len(asked)  # the log itself, the last of them
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
    first = [p.actions(starts, following.shape[2], seed=case.seed) for p in asked]
    taken = log.action[log.episode_starts][:, None]
    actions = np.stack([*first, np.broadcast_to(taken, (len(starts), following.shape[2], log.action_dim))])
    values = fitted.values(starts, actions, policy, quantity.horizon)
    whole = quantity.whole(log)
    shape = (own + 1, replicas, critics)
    by_member = ((values * weights).sum(axis=1) / weights.sum(axis=1)).reshape(shape)
    # The log's own return is known of whole episodes, and its critics are asked at their first states.
    missing = None
    if whole.any():
        known = (values[policy == own].mean(axis=0) - quantity.of_episodes(log))[whole]
        missing = float(known.mean())
    found = []
    for i, one in enumerate(asked):
        by_replica = by_member[i].mean(axis=1)
        value = float(by_replica.mean())
        spread = float(by_replica.std(ddof=1)) if replicas > 1 else 0.0
        over_critics = float(by_member[i].std(axis=1, ddof=1).mean()) if critics > 1 else 0.0
        # What it is known to be wrong by: on the log's own return, and in its own equation.
        over = float(left_over[policy == i].mean())
        wrong = float(np.hypot(missing or 0.0, over))
        spread = max(spread, over_critics / np.sqrt(critics))
        interval = interval_of(value, spread, replicas - 1, wrong, _unknown(case, rollouts[i]))
        worse = None if missing is None else max(missing, over, key=abs)
        evidence = Evidence(inside[i], _steps_inside(case, rollouts[i]), worse, _half(interval))
        details = {
            "bellman_residual": float(residual[policy == i].mean()),
            "bellman_residual_of_an_episode": over,
            "spread_over_critics": over_critics,
            "spread_over_replicas": spread,
        }
        details |= _known(missed_of_the_log=missing, actions_inside=inside[i])
        verdict = judge(evidence, case.scale, case.settings.verdict)
        found.append(case.estimate("fqe", one, value, interval, verdict, details, config))
    return found


def _by_model(
    case: _Case,
    asked: Sequence[Asked],
    inside: Sequence[float | None],
    rollouts: Sequence[Rollouts],
    given: tuple[Any, ...],
) -> list[Estimate]:
    """The model-based estimate of each policy."""
    del given
    config, quantity = case.settings.model_based, case.quantity
    checked = missed(case.world, case.held_out, quantity, config, case.bounds, seed=case.seed)
    missing = None if checked is None else checked[0]
    found = []
    for one, share, rolled in zip(asked, inside, rollouts, strict=True):
        value = float(rolled.returns.mean())
        over_members, over_starts = spread_of(rolled)
        spread = float(np.hypot(over_members, over_starts))
        members = len(rolled.returns)
        interval = interval_of(value, spread, members - 1, missing or 0.0, _unknown(case, rolled))
        low, high = bounded(rolled, case.bounds)
        evidence = Evidence(share, _steps_inside(case, rolled), missing, _half(interval))
        details = {
            "steps_outside": float(rolled.outside.mean()),
            "episodes_that_leave": float(np.mean(rolled.leaves < quantity.horizon)),
            "median_first_step_outside": float(np.median(rolled.leaves)),
            "trusted_part": float(rolled.trusted.mean()),
            "least_if_the_rest_is_worst": low,
            "most_if_the_rest_is_best": high,
            "spread_over_members": over_members,
            "spread_over_first_states": over_starts,
            "mean_length": float(rolled.lengths.mean()),
            **_known(missed_of_the_log=missing, actions_inside=share),
        }
        verdict = judge(evidence, case.scale, case.settings.verdict)
        found.append(case.estimate("model", one, value, interval, verdict, details, config))
    return found


def _doubly_robust(
    case: _Case,
    asked: Sequence[Asked],
    inside: Sequence[float | None],
    rollouts: Sequence[Rollouts],
    given: tuple[Any, ...],
) -> list[Estimate]:
    """The doubly robust estimate of each policy whose weights are worth enough episodes."""
    config, log, quantity = case.settings.doubly_robust, case.log, case.quantity
    fold = folds_of(log, config.folds)
    masks = np.stack([fold != k for k in range(fold.max() + 1)]).astype(float)
    if len(masks) < 2:
        words = ["the log has one episode, and cross-fitting needs two"]
        return [case.estimate("doubly-robust", one, None, None, (False, words), {}, config) for one in asked]
    behaviour = fit_behaviour(log, config.behaviour, masks, seed=case.seed)
    weighed = [weights_of(one, log, behaviour, fold, quantity, config.kernel) for one in asked]
    effective = [weights.effective for weights, _ in weighed]
    kept = [i for i, sizes in enumerate(effective) if sizes.min() >= config.least]
    values = _cross_fitted(case, asked, kept, masks, fold, given) if kept else {}
    found = []
    for i, one in enumerate(asked):
        worst = int(np.argmax(effective[i] < config.least)) if i not in kept else len(effective[i])
        details = {
            "effective_episodes": float(effective[i].min()),
            "steps_with_enough": float(worst),
        }
        if one.deterministic:
            details["kernel"] = float(np.mean(weighed[i][1]))
        if i not in kept:
            words = [
                f"refused: the weights are worth {effective[i].min():.3g} of {log.num_episodes:,} episodes, "
                f"and {config.least:g} are needed; they are too few from step {worst + 1} on"
            ]
            found.append(case.estimate("doubly-robust", one, None, None, (False, words), details, config))
            continue
        value, spread = corrected(
            weighed[i][0], log, quantity, *values[i], resamples=config.resamples, seed=case.seed
        )
        interval = interval_of(value, spread, max(int(effective[i].min()) - 1, 1), 0.0)
        evidence = Evidence(inside[i], _steps_inside(case, rollouts[i]), 0.0, _half(interval))
        believed, reasons = judge(evidence, case.scale, case.settings.verdict)
        if believed:
            reasons = [f"its weights are worth {effective[i].min():.3g} episodes at least", *reasons[:-1]]
        if one.deterministic:
            reasons = [*reasons, "it is that of the policy with some noise on its actions"]
        found.append(
            case.estimate("doubly-robust", one, value, interval, (believed, reasons), details, config)
        )
    return found


def _cross_fitted(
    case: _Case,
    asked: Sequence[Asked],
    kept: Sequence[int],
    masks: np.ndarray,
    fold: np.ndarray,
    given: tuple[Any, ...],
) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """V(s₀, H) of each episode, Q and V of each row, by critics that have not seen the episode."""
    log, quantity = case.log, case.quantity
    following, usable = given[0][list(kept)], given[1][list(kept)]
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
    actions = np.stack([asked[i].actions(starts, samples, seed=case.seed) for i in kept])
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

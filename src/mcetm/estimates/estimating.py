"""Estimates of several policies from one log: what they share is learned once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from mcetm.arguments import require, whole
from mcetm.data.transitions import Transitions
from mcetm.dynamics.world import World
from mcetm.errors import UserError
from mcetm.estimates.asked import Asked, next_actions
from mcetm.estimates.by_critics import estimate_by_critics
from mcetm.estimates.by_model import estimate_by_model
from mcetm.estimates.by_weights import estimate_by_weights
from mcetm.estimates.case import Case, EstimateSettings, Question, held_out_of
from mcetm.estimates.estimate import Estimate, Estimates, Estimator, PolicyEstimates
from mcetm.estimates.model_based import roll_out
from mcetm.estimates.quantity import Quantity
from mcetm.estimates.rewards import RewardRange
from mcetm.estimates.verdicts import ReturnScale
from mcetm.tasks.registry import get_task
from mcetm.training.sizes import check_sizes

_ROWS = 4096
"""Held-out states at most that a policy's actions are looked at in."""

ESTIMATORS: Mapping[Estimator, Callable[[Case], list[Estimate]]] = {
    "fqe": estimate_by_critics,
    "model": estimate_by_model,
    "doubly-robust": estimate_by_weights,
}
"""What each estimator says of every policy of a case."""
_NEED_NEXT_ACTIONS = {"fqe", "doubly-robust"}


def estimate_policies(
    asked: Sequence[Asked],
    log: Transitions,
    config: EstimateSettings | None = None,
    *,
    world: World | None = None,
    seed: int = 0,
) -> Estimates:
    """What each estimator says of each policy."""
    require("log", log, "a log (Transitions)", Transitions)
    require("settings", config, "EstimateSettings", EstimateSettings, NoneType)
    require("world", world, "a World", World, NoneType)
    whole("seed", seed)
    config = config or EstimateSettings()
    log.require("reward", "action")
    needed = _NEED_NEXT_ACTIONS & set(config.estimators)
    learned: dict[str, Any] = {"fqe": config.fqe} if needed else {}
    learned |= {} if world is not None else {"model": config.model, "world": config.world}
    check_sizes(learned, log)
    if len(log) < 2:
        raise UserError(f"{log.metadata.source} has too few rows to estimate anything from.")
    if len({policy.name for policy in asked}) < len(asked):
        raise UserError("Two policies have one name; estimates could not be told apart.")
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    quantity = Quantity.of(log, task, discount=config.discount, horizon=config.horizon)
    returns, complete = quantity.of_episodes(log), quantity.whole(log)
    scale = ReturnScale.of(returns[complete] if complete.any() else returns, ends=bool(log.terminated.any()))
    held = _held_out(log, config.holdout, seed)
    if world is None:
        train, holdout = log.split(config.holdout, seed=seed)
        if held.any():
            train, holdout = (log.select_episodes(np.flatnonzero(part)) for part in (~held, held))
        model = config.model.fit(train, holdout=holdout, seed=seed)
        world = World.of(model, train, holdout=holdout, config=config.world, task=task, seed=seed)
    bounds = RewardRange.of(log)
    rolled = roll_out(world, asked, log, quantity, config.model_based, bounds, seed=seed)
    questions = tuple(
        Question(policy, *_beside_the_log(policy, held_out_of(log, held), world, seed), rollouts)
        for policy, rollouts in zip(asked, rolled, strict=True)
    )
    following = next_actions(asked, log, config.fqe.samples, seed=seed) if needed else None
    case = Case(log, held, quantity, scale, config, world, bounds, questions, following, seed)
    found = {name: ESTIMATORS[name](case) for name in config.estimators}
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


def _beside_the_log(
    policy: Asked, held_out: Transitions, world: World, seed: int
) -> tuple[float | None, float | None]:
    """In held-out states: the share of the policy's actions inside the trust region, and their surprise."""
    if world.trust is None:
        return None, None
    rows = np.random.default_rng(seed).permutation(len(held_out))[:_ROWS]
    obs = held_out.obs[rows]
    score = world.pair_score(obs, policy.actions(obs, 1, seed=seed)[:, 0])
    inside = float(np.mean(np.asarray(score) <= float(world.trust.pair_limit)))
    pairs = world.trust.pairs
    return inside, None if pairs is None else float(pairs.surprise(score).mean())

"""Which scores know where a model errs, on the states that finished policies visit.

A rollout of a policy that is any good leaves the log. What cuts it should be high where the model errs
*there*, and nowhere else. So policies that are finished run in the simulator, the model predicts each of
their steps, and every score is asked to tell the large errors from the others. No policy is trained for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from mcetm import World
from mcetm.data import Transitions
from mcetm.dynamics import EnergyModel
from mcetm.envs import CONTROLLERS, collect
from mcetm.evaluation import auroc, spearman
from mcetm.tasks import RECIPES, get_task

LARGE = 0.95
"""An error is large where it exceeds this quantile of the errors on fresh episodes of the log."""
_SAMPLES = 5
_OTHER_SEED = 2_000_000

Rows = Float[np.ndarray, "rows columns"]
Score = Callable[[Rows, Rows], Float[np.ndarray, " rows"]]


def visitors(log: Transitions) -> tuple[str, ...]:
    """Finished policies of the log's task: its controllers, and the best snapshot that recipes know."""
    task = log.metadata.task
    known = [name for name, (purpose, _) in CONTROLLERS.items() if purpose == task]
    best = RECIPES.get(f"{task}-medium-expert")
    return (*known, *(() if best is None else best.parts[-1].policies))


def energy_score(model: EnergyModel, world: World) -> Score:
    """How far the lowest energy of each member's samples lies above its limit, mean over members."""

    def score(obs: Rows, action: Rows) -> Float[np.ndarray, " rows"]:
        energy: Any = model.samples(obs, action, _SAMPLES, key=jax.random.key(0)).energy
        limit: Any = None if world.trust is None else world.trust.next_state
        level = 0.0 if limit is None else np.asarray(limit.values)
        return np.asarray((np.asarray(energy).min(axis=-1) - level).mean(axis=-1))

    return score


def on_visited(
    world: World,
    scores: Mapping[str, Score],
    fresh: Transitions,
    policies: Sequence[str],
    *,
    rows: int,
    seed: int,
) -> dict[str, Any]:
    """For each policy, how much larger the errors are, and what every score knows of the large ones."""
    task = get_task(str(fresh.metadata.task))
    home = _picked(fresh, rows, seed)
    at_home = _errors(world, home)
    found: dict[str, Any] = {}
    for name in policies:
        log = collect(task, max(rows, len(policies)), name, seed=seed + _OTHER_SEED)
        away = _picked(log, rows, seed)
        error = np.concatenate([at_home, _errors(world, away)])
        large = error > np.quantile(at_home, LARGE)
        pairs = [np.concatenate([getattr(part, side) for part in (home, away)]) for side in ("obs", "action")]
        values = {label: score(*pairs) for label, score in scores.items()}
        found[name] = {
            "error_ratio": float(np.median(error[len(at_home) :]) / np.median(at_home)),
            "large": float(large[len(at_home) :].mean()),
            "auroc": {label: auroc(value[~large], value[large]) for label, value in values.items()},
            "spearman": {label: spearman(value, error) for label, value in values.items()},
        }
    return found


def _picked(log: Transitions, rows: int, seed: int) -> Transitions:
    """Some rows of a log, in random order; each is an episode of its own."""
    chosen = np.random.default_rng(seed).permutation(len(log))[:rows]
    return Transitions.from_arrays(
        obs=log.obs[chosen],
        action=log.action[chosen],
        reward=log.reward[chosen],
        next_obs=log.next_obs[chosen],
        terminated=log.terminated[chosen],
        truncated=~log.terminated[chosen],
        min_transitions=1,
    )


def _errors(world: World, rows: Transitions) -> Float[np.ndarray, " rows"]:
    """Root mean square error of the model's prediction, in spreads of one step's changes."""
    off = np.asarray(world.model.predict(rows.obs, rows.action)) - rows.next_obs
    off = off if world.change is None else off / np.asarray(world.change.std)
    return np.sqrt((off**2).mean(axis=-1))

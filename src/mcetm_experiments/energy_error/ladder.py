"""On and off the support of a log: held-out rows, and rungs that lead away from it, with true next states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data import Transitions
from mcetm.envs import collect_recipe, states_of, true_transitions
from mcetm.tasks import RECIPES, Recipe, Task
from mcetm_experiments.energy_error.distrust import Subject
from mcetm_experiments.shared.batched import in_batches

# The ladder was fixed before anything was measured on it, and no result changes it: half decades from what
# hardly leaves the data to what leaves them altogether, and rollouts up to beyond the longest in any preset.
STATE_NOISE = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Spreads of Gaussian noise on qpos and qvel, in units of each one's spread in the log."""
ACTION_NOISE = (0.1, 0.3, 1.0)
"""Spreads of Gaussian noise on actions, in units of half their range; noisy actions are clipped to it."""
DEPTHS = (5, 20, 50)
"""Steps that the model has imagined, with actions of a policy, before it is looked at."""

_OTHER_SEEDS = 1_000_000


@dataclass(frozen=True)
class Rung:
    """Pairs (s, a) of one kind and strength, and what the simulator makes of them."""

    family: str
    strength: float | str
    obs: Float[np.ndarray, "rows obs"]
    action: Float[np.ndarray, "rows action"]
    next_obs: Float[np.ndarray, "rows obs"]
    beside: bool = False
    """Looked at and not counted among all rungs together."""

    @property
    def name(self) -> str:
        """Family and strength, for tables."""
        return f"{self.family} {self.strength}" if self.strength != "" else self.family

    def __len__(self) -> int:
        return len(self.obs)


def rungs(
    task: Task,
    log: Transitions,
    test: Transitions,
    subject: Subject,
    *,
    dataset: str,
    rows: int,
    batch_size: int,
    seed: int,
) -> Iterator[Rung]:
    """Held-out rows first, then every rung; `log` gives the units of the noise, `dataset` is its name."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(test))[:rows]
    base = Rung("held out", "", test.obs[chosen], test.action[chosen], test.next_obs[chosen])
    qpos, qvel = test.infos["qpos"][chosen], test.infos["qvel"][chosen]
    yield base
    for size in STATE_NOISE:
        moved = [
            state + size * log.infos[name].std(axis=0) * rng.normal(size=state.shape)
            for name, state in (("qpos", qpos), ("qvel", qvel))
        ]
        yield _simulated(task, "state noise", size, moved[0], moved[1], base.action)
    low, high = np.array(task.action_low, np.float32), np.array(task.action_high, np.float32)
    for size in ACTION_NOISE:
        noise = size * (high - low) / 2 * rng.normal(size=base.action.shape)
        action = np.clip(base.action + noise, low, high).astype(np.float32)
        yield _simulated(task, "action noise", size, qpos, qvel, action)
    for name, recipe in RECIPES.items():
        if recipe.task == task.name and name != dataset:
            level = name.removeprefix(f"{task.name}-")
            yield _level(level, recipe, rows, seed, rng)
    yield from _rollouts(task, base, subject, batch_size=batch_size, key=jax.random.key(seed))
    mixed = RECIPES.get(f"{task.name}-medium-expert")
    if mixed is not None and mixed.name != dataset:
        # One half of it is medium's own policy; the other alone is no rung of the ladder, which was fixed.
        half = replace(mixed, parts=mixed.parts[-1:])
        yield replace(_level("expert half", half, rows, seed, rng), beside=True)


def _level(level: str, recipe: Recipe, rows: int, seed: int, rng: np.random.Generator) -> Rung:
    """Rows of a level, collected afresh."""
    # Levels share policies: with the seed of the log, some of its own episodes would come again.
    other = collect_recipe(recipe, steps=10 * rows, seed=seed + _OTHER_SEEDS)
    picked = rng.permutation(len(other))[:rows]
    return Rung("level", level, other.obs[picked], other.action[picked], other.next_obs[picked])


def _simulated(
    task: Task,
    family: str,
    strength: float,
    qpos: Float[np.ndarray, "rows qpos"],
    qvel: Float[np.ndarray, "rows qvel"],
    action: Float[np.ndarray, "rows action"],
) -> Rung:
    """A rung of simulator states; those where the task is over already are left out: nobody asks there."""
    found = true_transitions(task, qpos, qvel, action)
    asked = np.isfinite(found.next_obs).all(axis=1)
    if task.termination is not None:
        asked &= ~task.termination(found.obs)
    return Rung(family, strength, found.obs[asked], action[asked], found.next_obs[asked])


@eqx.filter_jit
def _follow(
    subject: Subject, termination: Callable[[Any], Any] | None, start: Array, keys: Array
) -> tuple[Array, Array, Array]:
    """(s, a) at every depth, and which branches have not ended before."""

    def step(carry: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], tuple]:
        obs, alive = carry
        act_key, model_key = jax.random.split(key)
        action = subject.valuer.act(obs, key=act_key)
        after = subject.energy.sample(obs, action, key=model_key)
        ended = jnp.zeros((), bool) if termination is None else termination(after)
        return (after, alive & ~ended), (obs, action, alive)

    def one(obs: Array, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
        begin = (obs, jnp.ones((), bool))
        rows = jax.lax.scan(step, begin, jax.random.split(key, max(DEPTHS) + 1))[1]
        return jax.tree_util.tree_map(lambda x: x[jnp.array(DEPTHS)], rows)

    return jax.vmap(one)(start, keys)


def _rollouts(
    task: Task, base: Rung, subject: Subject, *, batch_size: int, key: PRNGKeyArray
) -> Iterator[Rung]:
    """Where the model takes itself from held-out states; branches that have ended are left out."""
    keys = jax.random.split(key, len(base))
    columns = (jnp.asarray(base.obs), keys)
    obs, action, alive = in_batches(
        lambda *rows: _follow(subject, task.termination, *rows), columns, batch_size
    )
    for i, depth in enumerate(DEPTHS):
        kept = alive[:, i]
        yield _simulated(task, "rollout", depth, *states_of(task, obs[kept, i]), action[kept, i])

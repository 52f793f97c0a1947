"""Why a policy is as good as it is: its values against what really followed, its model where it goes.

A policy falls short because its critic believes too much or too little, because the model errs where the
policy takes it, or because too much is cut off or penalised. Each has a number here, measured on episodes of
the finished policy in the environment, with held-out data beside it.
"""

from __future__ import annotations

from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from mcetm.agents.acting import acting
from mcetm.agents.algorithm import ModelBased
from mcetm.agents.fit import Agent
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import candidate_values, spread_penalty
from mcetm.data.transitions import Transitions
from mcetm.dynamics import View, World
from mcetm.envs.pool import Pool
from mcetm.evaluation.returns import Rows, episode_bounds, run_episodes
from mcetm.nn.members import take_members
from mcetm.tasks.registry import Task
from mcetm.training.batches import Batch

_ROWS = 1000


def visit(agent: Agent, task: Task, *, episodes: int) -> list[Rows]:
    """Episodes of each seed's finished policy in the environment."""
    learners = cast(Learner, agent.learner)
    each: list[Learner] = [take_members(learners, i) for i in range(len(agent.worlds))]
    actors = [acting(learner.actor) for learner in each]
    with Pool() as pool:
        return run_episodes(task, actors, episodes=episodes, seed=11, pool=pool)


def diagnose(agent: Agent, visited: list[Rows], holdout: Transitions) -> dict[str, list[float]]:
    """The numbers, each with one value for every seed; each seed has its world, without one only values."""
    worlds, learners = agent.worlds, cast(Learner, agent.learner)
    view = cast(ModelBased, agent.algorithm).view if agent.algorithm.model_based else None
    measure = eqx.filter_jit(_measure)
    held = Batch.of(holdout.with_next).draw(_ROWS, key=jax.random.key(0))
    each: list[Learner] = [take_members(learners, i) for i in range(len(worlds))]
    found: dict[str, list[float]] = {}
    for learner, world, rows in zip(each, worlds, visited, strict=True):
        settled, returns = _settled(rows, learner.config.discount)
        chosen = np.random.default_rng(0).choice(settled, _ROWS)
        batch = Batch.of_fields({name: column[chosen] for name, column in rows.items()})
        numbers = {
            "return_to_go": returns[chosen].mean(),
            **measure(learner, world, view, batch, key=jax.random.key(1)),
        }
        reference = measure(learner, world, view, held, key=jax.random.key(1))
        numbers |= {f"held_out_{name}": value for name, value in reference.items() if name != "q"}
        for name, value in numbers.items():
            scale = agent.reward_scale if name == "q" else 1.0
            found.setdefault(name, []).append(float(value) / scale)
    return found


def _measure(
    learner: Learner, world: World | None, view: View | None, batch: Batch, *, key: PRNGKeyArray
) -> dict[str, Array]:
    def one(row: Batch, key: PRNGKeyArray) -> dict[str, Array]:
        q = learner.critics(row.obs, row.action).min()
        if world is None:
            return {"q": q}
        draw_key, value_key = jax.random.split(key)
        after = world.imagine(row.obs, row.action, view, key=draw_key)
        experience = Experience(row.obs, row.action, after)
        return {
            "q": q,
            "error": jnp.abs(after.next_obs - row.next_obs).mean(),
            "truncated": after.truncated.astype(jnp.float32),
            "penalty": spread_penalty(candidate_values(learner, experience, key=value_key).mean(axis=1)),
        }

    # A few at a time: the chains of every candidate are in memory at once.
    keys = jax.random.split(key, len(batch))
    found = jax.lax.map(lambda inputs: one(*inputs), (batch, keys), batch_size=100)
    return {name: column.mean() for name, column in found.items()}


def _settled(rows: Rows, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows after which the episode goes on long enough to know what follows, and all returns to go."""
    reward = rows["reward"].astype(np.float64)
    returns, settled = np.zeros(len(reward)), []
    for start, end in zip(*episode_bounds(rows), strict=True):
        total = 0.0
        for t in range(end - 1, start - 1, -1):
            returns[t] = total = reward[t] + discount * total
        cut = 0.0 if rows["terminated"][end - 1] else min(3.0 / (1.0 - discount), (end - start) / 2)
        settled.append(np.arange(start, end - int(cut)))
    return np.concatenate(settled), returns

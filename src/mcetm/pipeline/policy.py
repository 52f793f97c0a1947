"""The policy stage of a run: all seeds of one algorithm in one program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mcetm.agents.agent import Agent, Algorithm, learn, make_agent, over_seeds, refresh
from mcetm.agents.bc import fit_bc
from mcetm.agents.mcetm import MCETM
from mcetm.agents.mobile import MOBILE
from mcetm.agents.mopo import MOPO
from mcetm.agents.policy import numpy_policy
from mcetm.agents.sac import SAC
from mcetm.agents.targets import estimate_value_floor
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics import World
from mcetm.evaluation.returns import evaluate_policy
from mcetm.nn.actor import Actor
from mcetm.nn.members import take_members
from mcetm.pipeline.config import Algo, PolicyConfig
from mcetm.tasks.registry import Task
from mcetm.training import Light, Saving, fit
from mcetm.training.batches import Batch

# Networks, optimisers and random streams, without the imagined experience: a new generation refills that.
_LIGHT = Light(
    take=lambda agents: (agents.sac, agents.key),
    put=lambda agents, part: Agent(part[0], agents.buffer, part[1]),
)


def make_algorithm(algo: Algo, config: PolicyConfig, train: Transitions) -> Algorithm:
    """The algorithm with its settings."""
    if algo == "mopo":
        return MOPO(config.penalty)
    floor = config.value_floor
    if floor is None:
        floor = estimate_value_floor(train, config.sac.discount)
    if algo == "mobile":
        return MOBILE(config.penalty, floor)
    return MCETM(config.penalty, config.truncate, floor, config.spread_of)


def train_policies(
    train: Transitions,
    world: World | None,
    algo: Algo,
    config: PolicyConfig,
    bounds: tuple[Array, Array],
    task: Task | None,
    *,
    seeds: list[int],
    folder: Path,
    label: str,
) -> tuple[Actor, list[dict[str, Any]]]:
    """One actor for each seed, on a leading axis, and the metrics of their training."""
    numbers = jnp.asarray(seeds, jnp.int32)
    if algo == "bc":
        return fit_bc(train, *bounds, config.bc, seeds=numbers, folder=folder)
    assert world is not None  # noqa: S101 (only cloning needs none)
    data, statistics = Batch.of(train), Statistics.of(train)
    algorithm = make_algorithm(algo, config, train)

    def make(seed: Array) -> Agent:
        sac_key, agent_key = jax.random.split(jax.random.key(seed))
        sac = SAC.init(config.sac, statistics, *bounds, key=sac_key)
        return make_agent(sac, world, data, config.rollout, key=agent_key)

    step = over_seeds(lambda agent, data: learn(agent, data, algorithm, config.rollout))
    between = over_seeds(lambda agent, data: refresh(agent, data, config.rollout))
    setting = {
        "algorithm": {"name": algo, **vars(algorithm)},
        **asdict(config),
        "seeds": seeds,
        "data": train.checksum,
    }
    result = fit(
        lambda state, data, *, key: step(state, data),
        eqx.filter_vmap(make)(numbers),
        (data, world),
        steps=config.sac.steps,
        key=jax.random.key(0),
        chunk=config.rollout.every,
        between=between,
        validate=None if task is None else _returns(task, config, len(seeds)),
        saving=Saving(folder, setting, light=_LIGHT),
        label=label,
        watch=("q", "target", "return"),
    )
    return result.state.sac.actor, result.history


def _returns(task: Task, config: PolicyConfig, seeds: int) -> Callable[[Agent], dict[str, Array]]:
    """Returns of every seed's policy, every so many updates."""

    def validate(agents: Agent) -> dict[str, Array]:
        done = int(np.asarray(agents.sac.done).ravel()[0])
        last = done >= config.sac.steps
        if done % config.evaluate_every and not last:
            return {}
        return {"return": jnp.asarray(mean_returns(agents.sac.actor, task, config.episodes, seeds))}

    return validate


def mean_returns(actors: Actor, task: Task, episodes: int, seeds: int) -> list[float]:
    """Mean return of each seed's deterministic policy; all meet the same starts."""
    return [
        evaluate_policy(task, numpy_policy(take_members(actors, i)), episodes=episodes, seed=7).mean
        for i in range(seeds)
    ]


def without_safety(config: PolicyConfig) -> PolicyConfig:
    """The paper's double ablation: neither truncation nor penalty."""
    return replace(config, truncate=False, penalty=0.0)

"""The policy stage of a run: all seeds of one algorithm in one program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from mcetm.agents.agent import (
    Agent,
    Algorithm,
    buffer_gigabytes,
    experience,
    learn,
    make_agent,
    over_seeds,
    refresh,
)
from mcetm.agents.bc import fit_bc
from mcetm.agents.learner import Learner
from mcetm.agents.policy import numpy_policy
from mcetm.agents.rollout import RolloutConfig
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics import World
from mcetm.envs.pool import Pool
from mcetm.errors import UserError
from mcetm.evaluation.returns import evaluate_policies
from mcetm.nn.actor import Actor
from mcetm.nn.members import take_members
from mcetm.pipeline.algorithms import ALGORITHMS, Recipe
from mcetm.pipeline.config import Algo, PolicyConfig
from mcetm.tasks.registry import Task
from mcetm.training import Fit, Light, Saving, fit
from mcetm.training.batches import Batch
from mcetm.training.loop import Between, Step

# Networks, optimisers and random streams, without the imagined experience: a new generation refills that.
_LIGHT = Light(
    take=lambda agents: (agents.learner, agents.key, agents.model),
    put=lambda agents, part: eqx.tree_at(
        lambda a: (a.learner, a.key, a.model), agents, part, is_leaf=lambda x: x is None
    ),
)


@dataclass(frozen=True)
class Trained:
    """What a policy stage leaves, seeds on a leading axis."""

    actors: Actor
    history: list[dict[str, Any]]
    learner: Learner | None = None
    """Critics and all, where there are some."""
    reward_scale: float = 1.0
    """What the rewards were multiplied by, and so the values."""
    worlds: tuple[World | None, ...] = ()
    """What each seed imagined in at the end: its own where seeds change their models, the shared one else."""


@dataclass(frozen=True)
class Stage:
    """All that `fit` needs to train the seeds of an algorithm."""

    algorithm: Algorithm
    steps: int
    agents: Callable[[Array], Agent]
    """Fresh agents of these seeds, on a leading axis."""
    data: tuple[Batch, World | None]
    step: Step
    period: int
    """How many kinds of update take turns."""
    between: Between | None
    """Imagines a new generation; None where nothing is imagined."""
    reward_scale: float
    chunk: int
    """Updates between generations."""
    world_of: Callable[[Any], World | None]
    """The world that an agent with this model of its own imagines in."""

    def fit(self, agents: Agent, *, steps: int | None = None, **more: Any) -> Fit:
        """Train agents, for all the steps of the stage if not told otherwise."""
        return fit(
            self.step,
            agents,
            self.data,
            steps=self.steps if steps is None else steps,
            key=jax.random.key(0),
            chunk=self.chunk,
            period=self.period,
            between=self.between,
            reads=experience,
            **more,
        )


def make_stage(
    recipe: Recipe,
    train: Transitions,
    world: World | None,
    config: PolicyConfig,
    bounds: tuple[Array, Array],
    cloned: Actor | None = None,
) -> Stage:
    """Put an algorithm together; `cloned` holds the actors that its seeds begin with, if any."""
    assert recipe.learner is not None  # noqa: S101 (cloning has no stage)
    assert recipe.target is not None  # noqa: S101
    fresh, algorithm = recipe.learner, recipe.target(config, train)
    data, statistics = Batch.of(train), Statistics.of(train)
    scale = 1.0 if recipe.reward_scale is None else recipe.reward_scale(train)
    data = eqx.tree_at(lambda batch: batch.reward, data, data.reward * scale)
    adversarial = None if recipe.adversarial is None else recipe.adversarial(config)

    learner = eqx.filter_eval_shape(lambda: fresh(config, statistics, *bounds, key=jax.random.key(0)))

    def make(seed: Array, actor: Actor | None) -> Agent:
        learner_key, agent_key = jax.random.split(jax.random.key(seed))
        learner = fresh(config, statistics, *bounds, key=learner_key)
        if actor is not None:
            learner = eqx.tree_at(lambda x: x.actor, learner, actor)
        agent = make_agent(learner, world, data, config.rollout, key=agent_key)
        if adversarial is None or world is None:
            return agent
        return replace(agent, model=adversarial.begin(world.model))  # pyright: ignore[reportArgumentType]

    def step(state: Agent, data: Any, *, key: PRNGKeyArray, turn: int = 0) -> Any:
        # Every agent has its own stream of random numbers.
        return over_seeds(lambda a, d: learn(a, d, algorithm, config.rollout, turn=turn))(state, data)

    def world_of(model: Any) -> World | None:
        return world if adversarial is None or world is None else adversarial.world(model, world)

    between = over_seeds(lambda agent, data: refresh(agent, data, config.rollout, adversarial))
    return Stage(
        algorithm,
        recipe.settings(config).steps,
        lambda numbers: eqx.filter_vmap(make)(numbers, cloned),
        (data, world),
        step,
        learner.period,
        None if world is None else between,
        scale,
        config.rollout.every,
        world_of,
    )


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
) -> Trained:
    """Train all seeds, or read them back."""
    numbers = jnp.asarray(seeds, jnp.int32)
    if algo == "bc":
        return Trained(*fit_bc(train, *bounds, config.bc, seeds=numbers, folder=folder))
    recipe = ALGORITHMS[algo]
    cloned = None
    if recipe.clones:
        stochastic = replace(config.bc, sampled=True)
        cloned, _ = fit_bc(train, *bounds, stochastic, seeds=numbers, folder=folder / "cloned")
    stage = make_stage(recipe, train, world, config, bounds, cloned)
    setting = {
        "algorithm": {"name": algo, **vars(stage.algorithm)},
        **asdict(config),
        "seeds": seeds,
        "data": train.checksum,
    }
    if world is not None:
        _state_memory(buffer_gigabytes(eqx.filter_eval_shape(stage.agents, numbers)), config.rollout, label)
    with Pool() as pool:
        result = stage.fit(
            stage.agents(numbers),
            validate=None if task is None else _returns(task, config, stage.steps, len(seeds), pool),
            saving=Saving(folder, setting, light=_LIGHT),
            label=label,
            watch=("q", "target", "return"),
        )
    learner, model = result.state.learner, result.state.model
    worlds = tuple(stage.world_of(take_members(model, i)) for i in range(len(seeds)))
    return Trained(learner.actor, result.history, learner, stage.reward_scale, worlds)


def _state_memory(gigabytes: float, config: RolloutConfig, label: str) -> None:
    """Say what the imagined experience takes, and refuse more than is allowed."""
    print(f"{label}: imagined experience takes {gigabytes:.2f} GB", file=sys.stderr)
    if gigabytes > config.memory:
        raise UserError(
            f"The imagined experience would take {gigabytes:.1f} GB, and {config.memory:g} GB are allowed: "
            "lower policy.rollout.batch, policy.samples or the seeds, or raise policy.rollout.memory."
        )


def _returns(
    task: Task, config: PolicyConfig, steps: int, seeds: int, pool: Pool
) -> Callable[[Agent], dict[str, Array]]:
    """Returns of every seed's policy, every so many updates."""

    def validate(agents: Agent) -> dict[str, Array]:
        done = int(np.asarray(agents.learner.done).ravel()[0])
        last = done >= steps
        if done % config.evaluate_every and not last:
            return {}
        return {"return": jnp.asarray(mean_returns(agents.learner.actor, task, config.episodes, seeds, pool))}

    return validate


def mean_returns(
    actors: Actor, task: Task, episodes: int, seeds: int, pool: Pool | None = None
) -> list[float]:
    """Mean return of each seed's deterministic policy; all meet the same starts."""
    policies = [numpy_policy(take_members(actors, i)) for i in range(seeds)]
    return [found.mean for found in evaluate_policies(task, policies, episodes=episodes, seed=7, pool=pool)]


def without_safety(config: PolicyConfig) -> PolicyConfig:
    """The paper's double ablation: neither truncation nor penalty."""
    return replace(config, truncate=False, penalty=0.0)

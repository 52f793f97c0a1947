"""Training an algorithm: all seeds in one program, on the one training loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray
from pydantic import Field

from mcetm.agents.acting import acting
from mcetm.agents.agent import (
    AgentState,
    buffer_gigabytes,
    experience,
    learn,
    make_agent,
    over_seeds,
    refresh,
)
from mcetm.agents.algorithm import Algorithm, ModelBased
from mcetm.agents.bc import BC, fit_bc
from mcetm.agents.learner import Learner, Spaces
from mcetm.agents.policy import Policy
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.world import World
from mcetm.envs.pool import Pool
from mcetm.errors import UserError
from mcetm.evaluation.returns import MOST_EPISODES, evaluate_policies
from mcetm.nn.actor import Actor
from mcetm.nn.members import make_at_once, take_members
from mcetm.nn.mlp import NetworkFactory
from mcetm.settings import Positive, settings
from mcetm.tasks.registry import Task
from mcetm.training import Callback, LoopResult, PartialState, Saving, train_loop
from mcetm.training.batches import Batch
from mcetm.training.loop import Between, Step
from mcetm.training.windows import data_of, identity_of
from mcetm.versions import version_of

# Networks, optimisers and random streams, without the imagined experience: a new generation refills that.
_WITHOUT_EXPERIENCE = PartialState(
    take=lambda agents: (agents.learner, agents.key, agents.model),
    put=lambda agents, part: eqx.tree_at(
        lambda a: (a.learner, a.key, a.model), agents, part, is_leaf=lambda x: x is None
    ),
)


@settings
class EvaluationSettings:
    """How policies are evaluated in their environment, while they are trained and at the end."""

    every: Positive = 10_000
    """Updates between evaluations."""
    episodes: Annotated[int, Field(strict=True, ge=1, le=MOST_EPISODES)] = 10
    """Episodes of each seed's policy."""


@dataclass(frozen=True)
class Agent:
    """What training an algorithm leaves: a policy for each seed, and all that was learned beside it."""

    algorithm: Algorithm
    actors: Actor
    """Seeds on a leading axis."""
    seeds: tuple[int, ...]
    history: list[dict[str, Any]]
    """Metrics, a line for each chunk of updates."""
    learner: Learner | None = None
    """Critics and all, seeds on a leading axis; None where nothing has a value."""
    reward_scale: float = 1.0
    """What the rewards were multiplied by, and so the values."""
    names: dict[str, Any] = field(default_factory=dict)
    """What policies keep of the log: its checksum, and what it calls its columns."""
    worlds: tuple[World | None, ...] = ()
    """What each seed imagined in at the end: its own where seeds change their models, the shared one else."""

    @property
    def policies(self) -> list[Policy]:
        """The policy of each seed, in NumPy; it knows the world that it was trained in."""
        worlds = self.worlds or (None,) * len(self.seeds)
        return [
            Policy(
                acting(take_members(self.actors, i)),
                {
                    "algorithm": self.algorithm.label,
                    "seed": seed,
                    "mcetm": version_of("mcetm"),
                    "obs_mean": np.asarray(self.actors.obs_scale.mean[i]).tolist(),
                    "obs_std": np.asarray(self.actors.obs_scale.std[i]).tolist(),
                    **self.names,
                },
                world,
            )
            for i, (seed, world) in enumerate(zip(self.seeds, worlds, strict=True))
        ]


@dataclass(frozen=True)
class Stage:
    """All that the training loop needs to train the seeds of an algorithm."""

    algorithm: Algorithm
    steps: int
    agents: Callable[[Array], AgentState]
    """Fresh agents of these seeds, on a leading axis."""
    data: Any
    """The log, whole or in windows, and the world."""
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

    def train(self, agents: AgentState, *, steps: int | None = None, **more: Any) -> LoopResult:
        """Train agents, for all the steps of the stage if not told otherwise."""
        return train_loop(
            self.step,
            agents,
            self.data,
            steps=self.steps if steps is None else steps,
            key=jax.random.key(0),
            chunk=self.chunk,
            period=self.period,
            between=self.between,
            reads=experience,
            lanes=agents.key.shape[0],
            **more,
        )


def make_stage(
    algorithm: Algorithm,
    train: Transitions,
    world: World | None,
    bounds: tuple[Array, Array],
    cloned: Actor | None = None,
    network: NetworkFactory | None = None,
) -> Stage:
    """Put an algorithm together; `cloned` holds the actors that its seeds begin with, if any."""
    _check(algorithm, world)
    algorithm = algorithm.on(train)
    spaces, scale = Spaces(Statistics.of(train), *bounds), algorithm.reward_scale(train)
    seen = lambda rows: (eqx.tree_at(lambda batch: batch.reward, rows, rows.reward * scale), world)  # noqa: E731
    example, _ = seen(Batch.of(train.head(1)))
    imagining = cast(ModelBased, algorithm)
    adversary = None if world is None else imagining.adversary
    learner = eqx.filter_eval_shape(
        lambda: algorithm.make_learner(spaces, network=network, key=jax.random.key(0))
    )

    def make(seed: Array, actor: Actor | None) -> AgentState:
        learner_key, agent_key = jax.random.split(jax.random.key(seed))
        learner: Any = algorithm.make_learner(spaces, network=network, key=learner_key)
        if actor is not None:
            learner = eqx.tree_at(lambda x: x.actor, learner, actor)
        agent = make_agent(learner, world, example, algorithm, key=agent_key)
        if adversary is None or world is None:
            return agent
        return replace(agent, model=adversary.begin(world.model))

    def step(state: AgentState, data: Any, *, key: PRNGKeyArray, turn: int = 0) -> Any:
        # Every agent has its own stream of random numbers.
        return over_seeds(lambda a, d: learn(a, d, algorithm, turn=turn))(state, data)

    def world_of(model: Any) -> World | None:
        return world if adversary is None or world is None else adversary.world(model, world)

    between = over_seeds(lambda agent, data: refresh(agent, data, imagining))
    return Stage(
        algorithm,
        algorithm.updates,
        lambda numbers: eqx.filter_vmap(make)(numbers, cloned),
        data_of(train, seen),
        step,
        learner.period,
        None if world is None else between,
        scale,
        1000 if world is None else imagining.rollout.every,
        world_of,
    )


def fit_agent(
    algorithm: Algorithm,
    train: Transitions,
    world: World | None = None,
    *,
    seeds: Sequence[int] = (0,),
    task: Task | None = None,
    evaluation: EvaluationSettings | None = None,
    folder: Path | None = None,
    callbacks: Sequence[Callback] = (),
    network: NetworkFactory | None = None,
    label: str | None = None,
) -> Agent:
    """Train all seeds, or read them back from the folder; with a task they are evaluated on the way."""
    _check(algorithm, world)
    seeds, bounds = tuple(seeds), action_bounds(train)
    numbers = jnp.asarray(seeds, jnp.int32)
    label = label or algorithm.label
    evaluation = evaluation or EvaluationSettings()
    if algorithm.clones_only:
        actors, history = fit_bc(
            train,
            *bounds,
            cast(BC, algorithm),
            seeds=numbers,
            folder=folder,
            callbacks=callbacks,
            network=network,
        )
        return Agent(algorithm, actors, seeds, history, names=_kept_of(train))
    cloned = None
    if algorithm.cloning is not None:
        stochastic = replace(algorithm.cloning, sampled=True)
        place = None if folder is None else folder / "cloned"
        cloned, _ = fit_bc(train, *bounds, stochastic, seeds=numbers, folder=place, network=network)
    world = world if algorithm.model_based else None
    stage = make_stage(algorithm, train, world, bounds, cloned, network)
    setting = {"algorithm": asdict(stage.algorithm), "seeds": list(seeds), **identity_of(train)}
    if world is not None:
        shapes = eqx.filter_eval_shape(stage.agents, numbers)
        _check_memory(buffer_gigabytes(shapes), cast(ModelBased, algorithm), label)
    # Only this process knows a network of the user's own.
    with Pool(None if network is None else 1) as pool:
        result = stage.train(
            make_at_once(stage.agents, numbers) if network is None else stage.agents(numbers),
            validate=None if task is None else _returns(task, evaluation, stage.steps, len(seeds), pool),
            saving=None if folder is None else Saving(folder, setting, partial=_WITHOUT_EXPERIENCE),
            label=label,
            watch=("return", "q", "target"),
            callbacks=callbacks,
        )
    learner, model = result.state.learner, result.state.model
    worlds = tuple(stage.world_of(take_members(model, i)) for i in range(len(seeds)))
    return Agent(
        algorithm,
        learner.actor,
        seeds,
        result.history,
        learner,
        stage.reward_scale,
        _kept_of(train),
        worlds,
    )


def _kept_of(train: Transitions) -> dict[str, Any]:
    return {**train.metadata.known_names, "data_checksum": train.checksum}


def _check(algorithm: Algorithm, world: World | None) -> None:
    if algorithm.model_based and world is None:
        raise UserError(f"{algorithm.label} learns in a model of the world; give it one (world=).")
    if algorithm.needs_energy and world is not None and not world.model.has_energy:
        raise UserError(f"{algorithm.label} needs a model with energies, such as a standard ETM.")
    if world is not None:
        algorithm.check_members(world.model)
    if algorithm.needs_density and world is not None and not world.model.has_density:
        raise UserError(
            f"{algorithm.label} trains the likelihood of its model, so it needs a Gaussian ensemble."
        )
    budget = cast(ModelBased, algorithm).rollout.budget if algorithm.model_based else None
    if budget is not None and world is not None and (world.trust is None or world.trust.pairs is None):
        raise UserError(
            "algorithm.rollout.budget is spent on how unusual pairs are, so it needs a world with a score of "
            "them (world.pairs)."
        )


def _check_memory(gigabytes: float, algorithm: ModelBased, label: str) -> None:
    """Say what the imagined experience takes if that is much, and refuse more than is allowed."""
    if gigabytes > 1.0:
        print(f"{label}: imagined experience takes {gigabytes:.1f} GB", file=sys.stderr)
    if gigabytes > algorithm.rollout.memory:
        raise UserError(
            f"The imagined experience would take {gigabytes:.1f} GB, and {algorithm.rollout.memory:g} GB are "
            "allowed: lower algorithm.rollout.batch, algorithm.samples or the seeds, or raise "
            "algorithm.rollout.memory."
        )


def _returns(
    task: Task, evaluation: EvaluationSettings, steps: int, seeds: int, pool: Pool
) -> Callable[[AgentState], dict[str, Array]]:
    """Returns of every seed's policy, every so many updates."""

    def validate(agents: AgentState) -> dict[str, Array]:
        done = int(np.asarray(agents.learner.done).ravel()[0])
        last = done >= steps
        if done % evaluation.every and not last:
            return {}
        found = mean_returns(agents.learner.actor, task, evaluation.episodes, seeds, pool)
        return {"return": jnp.asarray(found)}

    return validate


def mean_returns(
    actors: Actor, task: Task, episodes: int, seeds: int, pool: Pool | None = None
) -> list[float]:
    """Mean return of each seed's deterministic policy; all meet the same starts."""
    policies = [acting(take_members(actors, i)) for i in range(seeds)]
    return [found.mean for found in evaluate_policies(task, policies, episodes=episodes, seed=7, pool=pool)]


def action_bounds(log: Transitions) -> tuple[Any, Any]:
    """Action bounds of the log, or of its actions where it does not say."""
    seen = [(block.action.min(axis=0), block.action.max(axis=0)) for block in log.blocks()]
    seen_low, seen_high = np.min([low for low, _ in seen], axis=0), np.max([high for _, high in seen], axis=0)
    low = seen_low if log.metadata.action_low is None else np.asarray(log.metadata.action_low)
    high = seen_high if log.metadata.action_high is None else np.asarray(log.metadata.action_high)
    low, high = np.where(np.isfinite(low), low, seen_low), np.where(np.isfinite(high), high, seen_high)
    # An action that never varies still needs some room for the policy's tanh.
    room = np.where(high - low < 1e-6, 1e-3, 0.0)
    return jnp.asarray(low - room, jnp.float32), jnp.asarray(high + room, jnp.float32)

"""One seed of an algorithm at work: imagining, drawing a minibatch, one update. All algorithms share it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import Algorithm, ModelBased
from mcetm.agents.learner import Learner, Minibatch
from mcetm.agents.rollout import Branches, Buffer, Experience, roll_out
from mcetm.agents.targets import candidate_values, spread_penalty
from mcetm.dynamics.world import World
from mcetm.training.batches import Batch
from mcetm.training.metrics import Metrics, Rows


class AgentState(eqx.Module):
    """One seed's learner: networks, imagined experience, and its own stream of random numbers."""

    learner: Learner
    buffer: Buffer | None
    """None where nothing is imagined."""
    key: PRNGKeyArray
    model: Any = None
    """A model that this seed changes as it learns; None where all share the world's."""
    branches: Branches | None = None
    """Where its rollouts stand, if they go on from one generation to the next."""
    reference: Float[Array, ""] | None = None
    """The spread of values over the log's own pairs, if the algorithm asks for it."""


def make_agent(
    learner: Learner, world: World | None, data: Batch, algorithm: Algorithm, *, key: PRNGKeyArray
) -> AgentState:
    """An agent with an empty buffer, if it has a world to imagine in."""
    if world is None:
        return AgentState(learner, None, key)
    imagining = cast(ModelBased, algorithm)

    def example(data: Batch, key: PRNGKeyArray) -> Experience:
        action = learner.act(data.obs[0], key=key)
        return Experience(data.obs[0], action, world.imagine(data.obs[0], action, imagining.view, key=key))

    shapes = eqx.filter_eval_shape(example, data, key)
    buffer, branches = Buffer.empty(imagining.rollout, shapes), Branches.ended(imagining.rollout, data.obs[0])
    return AgentState(
        learner, buffer, key, None, branches, jnp.zeros(()) if imagining.needs_reference else None
    )


def experience(agents: AgentState) -> Buffer | None:
    """What updates read and only a new generation changes."""
    return agents.buffer


def buffer_gigabytes(agents: Any) -> float:
    """Memory of imagined experience, of agents or of their mere shapes."""
    leaves = jax.tree_util.tree_leaves(agents.buffer)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) / 1e9


def refresh(
    agent: AgentState, data: tuple[Batch, World | None], algorithm: ModelBased
) -> tuple[AgentState, dict[str, Array]]:
    """Imagine a new generation with the policy of the moment; an adversary first changes the model."""
    batch, world = data
    buffer = agent.buffer
    if world is None or buffer is None:
        return agent, {}
    key = jax.random.fold_in(jax.random.fold_in(agent.key, 1), agent.learner.done.astype(jnp.int32))
    noted: dict[str, Array] = {}
    if algorithm.adversary is not None:
        agent, world, noted = algorithm.adversary(agent, batch, world, key=jax.random.fold_in(key, 1))
    found = roll_out(world, agent.learner, batch, algorithm, agent.branches, key=key)
    if agent.reference is not None:
        reference = spread_on_log(world, agent.learner, batch, algorithm, key=jax.random.fold_in(key, 2))
        agent, noted = replace(agent, reference=reference), {**noted, "reference_spread": reference}
    grown = buffer.add(found.rows, found.valid)
    return replace(agent, buffer=grown, branches=found.branches), {**found.metrics, **noted}


def spread_on_log(
    world: World, learner: Learner, data: Batch, algorithm: ModelBased, *, key: PRNGKeyArray, rows: int = 256
) -> Float[Array, ""]:
    """The mean spread of values over members, at pairs of the log: what staying on the data costs."""
    draw_key, rows_key = jax.random.split(key)

    def one(row: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
        world_key, value_key = jax.random.split(key)
        after = world.imagine(row.obs, row.action, algorithm.view, key=world_key)
        values = candidate_values(learner, Experience(row.obs, row.action, after), key=value_key)
        return spread_penalty(values.mean(axis=1))

    return jax.vmap(one)(data.draw(rows, key=draw_key), jax.random.split(rows_key, rows)).mean()


def learn(
    agent: AgentState, data: tuple[Batch, World | None], algorithm: Algorithm, *, turn: int = 0
) -> tuple[AgentState, Metrics]:
    """One update on a minibatch of recorded and imagined transitions; see the learner for `turn`."""
    batch, _ = data
    size = agent.learner.config.batch_size
    real = size
    if agent.buffer is not None:
        real = int(size * cast(ModelBased, algorithm).rollout.real_share)
    key = jax.random.fold_in(jax.random.fold_in(agent.key, 2), agent.learner.done.astype(jnp.int32))
    real_key, draw_key, prepare_key, value_key, target_key, update_key = jax.random.split(key, 6)
    recorded = batch.draw(real, key=real_key)
    parts = [(recorded.obs, recorded.action, recorded.next_or_same)]
    imagined = None
    if agent.buffer is not None and size > real:
        imagined = agent.buffer.draw(size - real, key=draw_key)
        if agent.reference is not None:
            imagined = replace(imagined, reference=jnp.broadcast_to(agent.reference, size - real))
        parts.append((imagined.obs, imagined.action, imagined.after.next_obs))
    minibatch = Minibatch(*(jnp.concatenate(columns) for columns in zip(*parts, strict=True)), real=real)
    learner, metrics = agent.learner.prepare(minibatch, key=prepare_key)
    # All next states at once, recorded or imagined: two passes would be twice as many small kernels.
    worth = lambda s, k: learner.next_value(s, key=k, entropy=algorithm.entropy_backup)  # noqa: E731
    values = jax.vmap(worth)(minibatch.next_obs, jax.random.split(value_key, size))
    targets = [jax.vmap(lambda row, v: algorithm.real_target(learner, row, v))(recorded, values[:real])]
    if imagined is not None:
        on_imagined = lambda row, v, k: algorithm.target(learner, row, v, key=k)  # noqa: E731
        keys = jax.random.split(target_key, size - real)
        guessed, found = jax.vmap(on_imagined)(imagined, values[real:], keys)
        targets.append(guessed)
        metrics = {**metrics, **{name: Rows(row) for name, row in found.items()}}
    learner, learned = learner.improve(minibatch, jnp.concatenate(targets), key=update_key, turn=turn)
    return replace(agent, learner=learner), {**metrics, **learned}


def over_seeds(step: Any) -> Any:
    """The same for every seed, whose agents share a leading axis; each has its own key in its state."""
    return lambda agents, data: eqx.filter_vmap(step, in_axes=(eqx.if_array(0), None))(agents, data)

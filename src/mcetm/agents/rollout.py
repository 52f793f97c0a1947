"""Branched rollouts inside a model, and the ring buffer that keeps the newest of them on the device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mcetm.agents.learner import Learner
from mcetm.dynamics.world import Imagined, World
from mcetm.settings import Positive, Rate, Share, settings
from mcetm.training.batches import Batch

if TYPE_CHECKING:
    from mcetm.agents.algorithm import ModelBased


@settings
class RolloutSettings:
    """How much is imagined, and how long it is kept."""

    batch: Positive = 400
    """Branches of one generation, from dataset states."""
    horizon: Positive = 5
    """Steps of a branch in one generation."""
    longest: Positive | None = None
    """Branches go on in the next generation until they end or have taken so many steps, and a new one begins
    wherever one ends. None: all end with their generation."""
    budget: Rate | None = None
    """A branch ends when its pairs have been as surprising, all together, as so many steps of the log. None:
    only its steps count. The world needs a score of pairs."""
    every: Positive = 500
    """Updates between generations."""
    retain: Positive = 5
    """Generations kept."""
    parallel: Positive = 10_000
    """Branches imagined at once: bounds the memory of the chains."""
    real_share: Share = 0.05
    """Share of each minibatch that comes from the log."""
    memory: Rate = 32.0
    """Gigabytes that the buffers of all seeds may take; larger ones are refused."""

    @property
    def capacity(self) -> int:
        """Rows of the buffer."""
        return self.batch * self.horizon * self.retain


class Experience(eqx.Module):
    """Imagined transitions: (s, a) and all that was imagined after them."""

    obs: Float[Array, "*rows obs"]
    action: Float[Array, "*rows action"]
    after: Imagined
    reference: Float[Array, "*rows"] | None = None
    """The spread of values that the log's own pairs have at this moment, where an algorithm asks for it."""


class Branches(eqx.Module):
    """Where the branches of a generation stand."""

    obs: Float[Array, "batch obs"]
    age: Int[Array, " batch"]
    """Steps taken; one that is as old as it may be begins anew."""
    spent: Float[Array, " batch"]
    """How surprising its pairs have been, all together."""

    @classmethod
    def ended(cls, config: RolloutSettings, obs: Float[Array, " obs"]) -> Branches | None:
        """Branches that all begin anew; None where none goes on beyond its generation."""
        if config.longest is None:
            return None
        shape = (config.batch, *obs.shape)
        ages = jnp.full(config.batch, config.longest, jnp.int32)
        return cls(jnp.zeros(shape, obs.dtype), ages, jnp.zeros(config.batch))


class Buffer(eqx.Module):
    """The last generations; rows that a finished branch did not fill are never drawn."""

    rows: Experience
    valid: Bool[Array, " capacity"]
    order: Int[Array, " capacity"]
    """Row numbers, the valid ones first."""
    count: Int[Array, ""]
    """How many are valid."""
    generations: Int[Array, ""]
    """How many were ever added."""

    @classmethod
    def empty(cls, config: RolloutSettings, example: Experience) -> Buffer:
        """A buffer without rows, shaped after one example."""
        rows = jax.tree_util.tree_map(lambda x: jnp.zeros((config.capacity, *x.shape), x.dtype), example)
        zero = jnp.zeros((), jnp.int32)
        return cls(
            rows, jnp.zeros(config.capacity, bool), jnp.arange(config.capacity, dtype=jnp.int32), zero, zero
        )

    def add(self, generation: Experience, valid: Bool[Array, " rows"]) -> Buffer:
        """Write a generation over the oldest one."""
        size = valid.shape[0]
        start = (self.generations % (self.valid.shape[0] // size)) * size
        put = lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, start, 0)  # noqa: E731
        rows = jax.tree_util.tree_map(put, self.rows, generation)
        valid = put(self.valid, valid)
        order = jnp.argsort(~valid, stable=True).astype(jnp.int32)
        return Buffer(rows, valid, order, valid.sum(dtype=jnp.int32), self.generations + 1)

    def draw(self, size: int, *, key: PRNGKeyArray) -> Experience:
        """Valid rows, uniformly with replacement."""
        chosen = self.order[jax.random.randint(key, (size,), 0, jnp.maximum(self.count, 1))]
        return jax.tree_util.tree_map(lambda column: column[chosen], self.rows)


class Generation(NamedTuple):
    """What branches went through at one time."""

    rows: Experience
    """Step by step."""
    valid: Bool[Array, " rows"]
    """Which of them are steps that something is learned from."""
    metrics: dict[str, Array]
    branches: Branches | None
    """Where branches stand afterwards, if they go on."""


def roll_out(
    world: World,
    learner: Learner,
    data: Batch,
    algorithm: ModelBased,
    branches: Branches | None = None,
    *,
    key: PRNGKeyArray,
) -> Generation:
    """Let all branches take their steps."""
    config, view = algorithm.rollout, algorithm.view
    view = replace(view, surprise=config.budget is not None)
    start_key, branch_key = jax.random.split(key)
    begin = lambda key, shape=(): data.obs[jax.random.randint(key, shape, 0, len(data))]  # noqa: E731
    starts = begin(start_key, (config.batch,))
    ages, spent = jnp.zeros(config.batch, jnp.int32), jnp.zeros(config.batch)
    if branches is not None and config.longest is not None:
        fresh = branches.age >= config.longest
        starts, ages = jnp.where(fresh[:, None], starts, branches.obs), jnp.where(fresh, 0, branches.age)
        spent = jnp.where(fresh, 0.0, branches.spent)

    def branch(inputs: tuple[Array, Array, Array, PRNGKeyArray]) -> tuple[Any, tuple[Experience, Array]]:
        start, age, spent, key = inputs

        def step(carry: tuple[Array, Array, Array, Array], step_key: PRNGKeyArray) -> tuple[Any, tuple]:
            obs, age, spent, alive = carry
            act_key, world_key = jax.random.split(step_key)
            action = learner.act(obs, key=act_key)
            after = world.imagine(obs, action, view, key=world_key)
            goes_on = alive & ~after.terminated & ~after.truncated
            counts = alive & ~(after.truncated & algorithm.drops_untrusted)
            if after.surprise is not None and config.budget is not None:
                spent = spent + after.surprise
                goes_on &= spent < config.budget
            row = Experience(obs, action, replace(after, surprise=None)), counts
            if config.longest is None:
                # A branch that has ended stands still; its rows do not count.
                return (jnp.where(goes_on, after.next_obs, obs), age, spent, goes_on), row
            goes_on &= jnp.isfinite(after.next_obs).all() & (age + 1 < config.longest)
            following = jnp.where(goes_on, after.next_obs, begin(jax.random.fold_in(step_key, 1)))
            return (following, jnp.where(goes_on, age + 1, 0), jnp.where(goes_on, spent, 0.0), alive), row

        keys = jax.random.split(key, config.horizon)
        (last, age, spent, _), rows = jax.lax.scan(step, (start, age, spent, jnp.ones((), bool)), keys)
        return (last, age, spent), rows

    keys = jax.random.split(branch_key, config.batch)
    (last, ages, spent), (rows, valid) = jax.lax.map(
        branch, (starts, ages, spent, keys), batch_size=min(config.parallel, config.batch)
    )
    flat = lambda x: jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:])  # noqa: E731
    rows, valid = jax.tree_util.tree_map(flat, rows), flat(valid)
    steps = jnp.maximum(valid.sum(dtype=jnp.float32), 1.0)
    share = lambda flags: (flags & valid).sum(dtype=jnp.float32) / steps  # noqa: E731
    # What is not a number is never drawn, and is not kept either.
    finite = jnp.isfinite(rows.after.next_obs).all(axis=-1) & jnp.isfinite(rows.after.reward)
    finite &= jnp.isfinite(rows.after.candidates).all(axis=(1, 2, 3)) & jnp.isfinite(rows.after.uncertainty)
    clean = lambda x: jnp.nan_to_num(x) if eqx.is_inexact_array(x) else x  # noqa: E731
    metrics = {
        "rollout_length": steps / config.batch,
        "rollout_truncated": share(rows.after.truncated),
        "rollout_terminated": share(rows.after.terminated),
        "rollout_reward": jnp.where(valid & finite, rows.after.reward, 0.0).sum() / steps,
    }
    if branches is not None:
        metrics["rollout_age"] = ages.mean(dtype=jnp.float32)
        branches = Branches(last, ages, spent)
    return Generation(jax.tree_util.tree_map(clean, rows), valid & finite, metrics, branches)

"""What the behaviour is worth: a cloned policy, and its Q by fitted evaluation on the log.

For studies of penalties on Q that have no trained agent at hand. The policy that is evaluated is the one that
acts at imagined states, so both are the clone's; nothing is improved, so nothing is overestimated on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents import (
    BC,
    Critics,
    Minibatch,
    bellman_target,
    fit_bc,
    make_critics,
    polyak_update,
    update_critics,
)
from mcetm.data import Statistics, Transitions
from mcetm.nn import Actor, InputScaling, take_members
from mcetm.training import Batch, Metrics, init_optimiser, train_loop


@dataclass(frozen=True)
class ValueConfig:
    """Cloning and evaluation; sizes are the agents'."""

    cloning: BC = field(
        default_factory=lambda: BC(width=256, depth=2, batch_size=256, learning_rate=3e-4, steps=30_000)
    )
    """How the behaviour is cloned."""
    width: int = 256
    """Units of each hidden layer of a critic."""
    depth: int = 2
    """Hidden layers of a critic."""
    critics: int = 2
    """Critics, of which the least counts."""
    discount: float = 0.99
    """γ."""
    smoothing: float = 0.005
    """Share of the new weights in each Polyak update of the slow critics."""
    batch_size: int = 256
    """Rows of an update."""
    rate: float = 3e-4
    """Adam's learning rate."""
    steps: int = 50_000
    """Updates."""


class Evaluated(eqx.Module):
    """A policy and what its actions are worth, asked like a learner."""

    actor: Actor
    critics: Critics

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        """The policy's mode: cloning by least squares gives it no spread."""
        return self.actor.mode(obs)

    def next_value(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, ""]:
        """The least of the critics, as agents take it."""
        return self.critics(obs, self.actor.mode(obs)).min()


def evaluate_behaviour(
    log: Transitions, low: Array, high: Array, config: ValueConfig, *, seed: int
) -> Evaluated:
    """Clone the behaviour of a log and evaluate the clone on it."""
    actors, _ = fit_bc(log, low, high, config.cloning, seeds=jnp.asarray([seed], jnp.int32))
    actor = take_members(actors, 0)
    statistics = Statistics.of(log)
    make_key, fit_key = jax.random.split(jax.random.key(seed))
    critics = make_critics(
        config.critics,
        InputScaling.of(statistics.obs, statistics.action),
        width=config.width,
        depth=config.depth,
        key=make_key,
    )

    def step(state: Any, data: Batch, *, key: PRNGKeyArray) -> tuple[Any, Metrics]:
        critics, slow, opt_state = state
        batch = data.draw(config.batch_size, key=key)

        def target(row: Batch) -> Array:
            value = Evaluated(actor, slow).next_value(row.next_obs, key=key)
            return bellman_target(row.reward, row.terminated, value, config.discount)

        rows = Minibatch(batch.obs, batch.action, batch.next_obs, real=config.batch_size)
        critics, opt_state, metrics = update_critics(
            critics, opt_state, rows, jax.vmap(target)(batch), rate=config.rate
        )
        return (critics, polyak_update(slow, critics, config.smoothing), opt_state), metrics

    result = train_loop(
        step,
        (critics, critics, init_optimiser(optax.adam(config.rate), critics)),
        Batch.of(log),
        steps=config.steps,
        key=fit_key,
        label="value of the behaviour",
        watch=("q", "target"),
    )
    return Evaluated(actor, result.state[1])

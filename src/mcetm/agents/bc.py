"""Behaviour cloning: the policy that predicts the log's actions, for reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int, PRNGKeyArray

from mcetm.agents.algorithm import Algorithm
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.nn.actor import Actor
from mcetm.nn.scaling import Scaling
from mcetm.settings import Positive, Rate, Switch, settings
from mcetm.training import Callback, Saving, train_loop
from mcetm.training.batches import Batch
from mcetm.training.optimise import apply_gradient, init_optimiser


@settings
class BC(Algorithm):
    """Least squares between the policy's actions and the log's."""

    label: ClassVar[str] = "behaviour cloning"
    clones_only: ClassVar[bool] = True

    name: Literal["bc"] = "bc"
    """Its name in files and on the command line."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    batch_size: Positive = 128
    """Transitions of a minibatch."""
    learning_rate: Rate = 1e-3
    """Of Adam."""
    steps: Positive = 3000
    """Updates."""
    sampled: Switch = False
    """On samples instead of the mode: a stochastic policy then learns how little to spread."""


def fit_bc(
    train: Transitions,
    low: Array,
    high: Array,
    config: BC | None = None,
    *,
    seeds: Int[Array, " seeds"],
    folder: Path | None = None,
    callbacks: Sequence[Callback] = (),
    chunk: int = 1000,
) -> tuple[Actor, list[dict[str, Any]]]:
    """One actor for each seed, on a leading axis."""
    config = config or BC()
    scale = Scaling.of(Statistics.of(train).obs)
    optimiser = optax.adam(config.learning_rate)

    def make(seed: Array) -> Any:
        key = jax.random.key(seed)
        actor = Actor(scale, low, high, width=config.width, depth=config.depth, key=key)
        return actor, init_optimiser(optimiser, actor), key

    def one(state: Any, data: Batch, index: Array) -> tuple[Any, dict[str, Array]]:
        actor, opt_state, seed_key = state
        batch_key = jax.random.fold_in(seed_key, index)
        batch = data.draw(config.batch_size, key=batch_key)

        def loss(actor: Actor) -> Array:
            def off(obs: Array, action: Array, key: PRNGKeyArray) -> Array:
                own = actor.sample(obs, key=key)[0] if config.sampled else actor.mode(obs)
                return actor.unit(own) - actor.unit(action)

            keys = jax.random.split(jax.random.fold_in(batch_key, 1), config.batch_size)
            return (jax.vmap(off)(batch.obs, batch.action, keys) ** 2).mean()

        value, gradient = eqx.filter_value_and_grad(loss)(actor)
        actor, opt_state = apply_gradient(optimiser, actor, gradient, opt_state)
        return (actor, opt_state, seed_key), {"loss": value}

    def step(state: Any, data: Batch, *, key: PRNGKeyArray) -> tuple[Any, dict[str, Array]]:
        states, count = state
        states, metrics = eqx.filter_vmap(one, in_axes=(eqx.if_array(0), None, None))(states, data, count)
        return (states, count + 1), metrics

    setting = {**asdict(config), "seeds": seeds.tolist(), "data": train.checksum}
    result = train_loop(
        step,
        (eqx.filter_vmap(make)(seeds), jnp.zeros((), jnp.int32)),
        Batch.of(train),
        steps=config.steps,
        key=jax.random.key(0),
        chunk=chunk,
        saving=None if folder is None else Saving(folder, setting),
        label="behaviour cloning",
        callbacks=callbacks,
    )
    return result.state[0][0], result.history

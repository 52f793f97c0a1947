"""Behaviour cloning: the policy that predicts the log's actions, for reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import jax
from jaxtyping import Array, Int, PRNGKeyArray

from mcetm.agents.algorithm import Algorithm
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.nn.actor import Actor
from mcetm.nn.members import make_members
from mcetm.nn.mlp import NetworkFactory
from mcetm.nn.scaling import Scaling
from mcetm.settings import Positive, Rate, Switch, settings
from mcetm.training import Callback, minimise
from mcetm.training.batches import Batch


@settings
class BC(Algorithm):
    """Behaviour cloning: a policy that does what the log does, by least squares on its actions."""

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
    network: NetworkFactory | None = None,
    chunk: int = 1000,
) -> tuple[Actor, list[dict[str, Any]]]:
    """One actor for each seed, on a leading axis."""
    config = config or BC()
    scale = Scaling.of(Statistics.of(train).obs)
    keys = jax.vmap(jax.random.key)(seeds)

    def make(key: PRNGKeyArray) -> Actor:
        return Actor(scale, low, high, width=config.width, depth=config.depth, network=network, key=key)

    def loss(actor: Actor, data: Batch, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        batch = data.draw(config.batch_size, key=key)
        noise_keys = jax.random.split(jax.random.fold_in(key, 1), config.batch_size)

        def off(obs: Array, action: Array, key: PRNGKeyArray) -> Array:
            own = actor.sample(obs, key=key)[0] if config.sampled else actor.mode(obs)
            return actor.unit(own) - actor.unit(action)

        return (jax.vmap(off)(batch.obs, batch.action, noise_keys) ** 2).mean(), {}

    return minimise(
        loss,
        make_members(make, keys, network=network),
        train,
        config,
        key=jax.random.key(0),
        members=True,
        keys=keys,
        chunk=chunk,
        folder=folder,
        depends_on={"seeds": seeds.tolist()},
        callbacks=callbacks,
        label="behaviour cloning",
    )

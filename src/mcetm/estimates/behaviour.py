"""The policy that made a log, as far as a Gaussian can say: a ~ N(mean(s), spread²), fitted by likelihood.

Its spread is learned, one number for each action and state. Several are fitted at once, each to a part of
the episodes: what a weight is computed for has then not been seen by what computes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.estimates.quantity import episode_of_rows
from mcetm.nn.members import make_members
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import Scaling
from mcetm.settings import Positive, Rate, settings
from mcetm.training import minimise
from mcetm.training.batches import Batch

_LOG_STD = (-4.0, 1.0)
"""Of the spread, in spreads of the log's actions."""
_ROWS = 16_384


@settings
class BehaviourSettings:
    """How the policy that made the log is fitted."""

    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    batch_size: Positive = 256
    """Transitions of a minibatch."""
    learning_rate: Rate = 1e-3
    """Of Adam; it falls to 0 over the steps."""
    steps: Positive = 2000
    """Updates."""


class Behaviour(eqx.Module):
    """One Gaussian policy, one example at a time."""

    network: MLP
    obs_scale: Scaling
    action_scale: Scaling

    def distribution(self, obs: Float[Array, " obs"]) -> tuple[Array, Array]:
        """Mean and log-spread, in spreads of the log's actions."""
        mean, log_std = jnp.split(self.network(self.obs_scale.normalize(obs)), 2)
        return mean, jnp.clip(log_std, *_LOG_STD)

    def log_density(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """Of an action in raw units."""
        mean, log_std = self.distribution(obs)
        off = (self.action_scale.normalize(action) - mean) / jnp.exp(log_std)
        unit = -0.5 * off**2 - log_std - 0.5 * jnp.log(2.0 * jnp.pi)
        return (unit - jnp.log(jax.lax.stop_gradient(self.action_scale.std))).sum()


def fit_behaviour(
    log: Transitions,
    config: BehaviourSettings,
    weights: Float[np.ndarray, "members episodes"],
    *,
    seed: int = 0,
    folder: Path | None = None,
) -> Behaviour:
    """One policy for each row of weights of episodes, on a leading axis."""
    statistics = Statistics.of(log)
    obs_scale, action_scale = Scaling.of(statistics.obs), Scaling.of(statistics.action)
    episode = jnp.asarray(episode_of_rows(log), jnp.int32)

    def make(key: PRNGKeyArray) -> Behaviour:
        network = MLP(log.obs_dim, 2 * log.action_dim, width=config.width, depth=config.depth, key=key)
        return Behaviour(network, obs_scale, action_scale)

    def loss(policy: Behaviour, data: Any, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        batch, counts = data
        rows = jax.random.randint(key, (config.batch_size,), 0, len(batch))
        drawn: Batch = batch.take(rows)
        weight = counts[episode[rows]]
        found = jax.vmap(policy.log_density)(drawn.obs, drawn.action)
        return -(weight * found).sum() / jnp.maximum(weight.sum(), 1e-6), {}

    policies, _ = minimise(
        loss,
        make_members(make, jax.random.split(jax.random.key(seed), len(weights))),
        log,
        config,
        key=jax.random.key(seed),
        schedule="cosine",
        members=True,
        own=jnp.asarray(weights, jnp.float32),
        folder=folder,
        depends_on={"weights": np.asarray(weights).tolist(), "seed": seed},
        label="the log's own policy",
    )
    return policies


def log_densities(
    policies: Behaviour, obs: np.ndarray, action: np.ndarray
) -> Float[np.ndarray, "members rows"]:
    """Of each row under each policy."""
    parts = [
        np.asarray(_densities(policies, jnp.asarray(obs[i : i + _ROWS]), jnp.asarray(action[i : i + _ROWS])))
        for i in range(0, len(obs), _ROWS)
    ]
    return np.concatenate(parts, axis=1)


@eqx.filter_jit
def _densities(policies: Behaviour, obs: Array, action: Array) -> Array:
    return eqx.filter_vmap(lambda policy: jax.vmap(policy.log_density)(obs, action))(policies)


def spreads(policies: Behaviour, obs: np.ndarray) -> Float[np.ndarray, "members action"]:
    """The median spread of each action, in raw units."""
    return np.asarray(_spreads(policies, jnp.asarray(obs)))


@eqx.filter_jit
def _spreads(policies: Behaviour, obs: Array) -> Array:
    def one(policy: Behaviour) -> Array:
        log_std = jax.vmap(lambda o: policy.distribution(o)[1])(obs)
        return jnp.median(jnp.exp(log_std), axis=0) * policy.action_scale.std

    return eqx.filter_vmap(one)(policies)

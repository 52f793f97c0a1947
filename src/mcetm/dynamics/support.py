"""What an energy cannot learn from next states: whether (s, a) itself is known.

Ranking negatives of the same (s, a) leaves a term c(s, a) of every energy free. Here it is chosen so that the
level of the energy means something: an anchored energy has, at its anchor's mean, D times the log of the
error to expect, members' disagreement included; and all energies take w · v(s, a), with v the log-odds that a
pair is not of the log, learned against pairs of the log moved a little or a lot. No chain feels c, since it
does not depend on s'. How large an error is and how strange a pair is are two questions: `expected_errors`
answers the first, the energy with all of c the second.
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
from mcetm.dynamics.energy import Energy
from mcetm.nn.members import make_at_once, member_count
from mcetm.nn.mlp import MLP, Activation
from mcetm.nn.scaling import InputScaling
from mcetm.settings import Positive, Rate, Weight, settings
from mcetm.training import EarlyStopping, minimise
from mcetm.training.batches import Batch


@settings
class SupportSettings:
    """How the support of a log is learned, and how much of it energies take."""

    weight: Weight = 8.0
    """w: how much the support counts beside the energy."""
    most: Rate = 5.0
    """|v| at most: far from the log the odds grow without bound and without meaning."""
    smallest: Rate = 0.03
    """The least noise of moved pairs, in spreads of the log; sizes are drawn evenly by their logarithm."""
    largest: Rate = 2.0
    """The most noise of moved pairs."""
    width: Positive = 200
    """Units of each hidden layer."""
    depth: Positive = 4
    """Hidden layers."""
    activation: Activation = "silu"
    """The activation between layers."""
    batch_size: Positive = 1024
    """Pairs of a minibatch."""
    learning_rate: Rate = 4e-3
    """Of Adam; it falls to 0 over the steps."""
    steps: Positive = 30_000
    """Updates at most."""
    patience: Positive = 10
    """Validations without improvement after which training stops; one every 1000 steps."""


class Support(eqx.Module):
    """w · v(s, a): high where a pair is unlike those of the log."""

    network: MLP
    inputs: InputScaling
    weight: float = eqx.field(static=True, default=1.0)
    most: float = eqx.field(static=True, default=5.0)

    def log_odds(self, pair: Float[Array, " obs_action"]) -> Float[Array, ""]:
        """Of a standardised pair not to be of the log, unbounded."""
        return self.network(pair)[0]

    def __call__(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """What energies of this (s, a) take."""
        odds = self.log_odds(self.inputs.pair(obs, action))
        return self.weight * self.most * jnp.tanh(odds / self.most)


def expected_errors(
    members: Energy, obs: Float[Array, " obs"], action: Float[Array, " action"]
) -> Float[Array, " members"]:
    """ε: the error to expect of each member's prediction.

    The root mean square over components of √(σ² + d²), with σ what its anchor expects and d² the variance
    of the anchors' means around each other, in units of the changes' spread.
    """
    return _at_means(members, obs, action)[0]


def pinned(
    members: Energy, obs: Float[Array, " obs"], action: Float[Array, " action"]
) -> Float[Array, " members"]:
    """What takes anchored energies, at their anchors' means, to D log ε; 0 for energies without anchors.

    Ranking has left U a level of its own, which goes.
    """
    if members.anchor is None:
        return jnp.zeros(member_count(members))
    expected, energies = _at_means(members, obs, action)
    return obs.shape[0] * jnp.log(expected) - energies


def _at_means(
    members: Energy, obs: Array, action: Array
) -> tuple[Float[Array, " members"], Float[Array, " members"]]:
    """ε, and the energy at the anchor's mean."""

    def at_mean(member: Energy) -> tuple[Array, Array, Array]:
        assert member.anchor is not None  # noqa: S101 (asked of anchored energies alone)
        mean, std = member.anchor.predict(obs, action)
        unit = member.anchor.change_scale.std
        return mean / unit, std / unit, member(obs, action, mean)

    means, stds, energies = eqx.filter_vmap(at_mean)(members)
    apart = means.var(axis=0, ddof=1) if member_count(members) > 1 else jnp.zeros_like(obs)
    return jnp.sqrt((stds**2 + apart).mean(axis=-1)), energies


def moved(
    pair: Float[Array, " obs_action"], obs_dim: int, config: SupportSettings, *, key: PRNGKeyArray
) -> Float[Array, " obs_action"]:
    """A standardised pair with noise on the state, on the action or on both, each of a size of its own."""
    size_key, part_key, noise_key = jax.random.split(key, 3)
    low, high = np.log(config.smallest), np.log(config.largest)
    sizes = jnp.exp(jax.random.uniform(size_key, (2,), minval=low, maxval=high))
    kept = jax.random.randint(part_key, (), 0, 3)  # 0: the state stays, 1: the action, 2: neither
    sizes = jnp.where(jnp.arange(2) == kept, 0.0, sizes)
    state = jnp.arange(pair.shape[0]) < obs_dim
    return pair + jnp.where(state, sizes[0], sizes[1]) * jax.random.normal(noise_key, pair.shape)


def fit_support(
    train: Transitions,
    holdout: Transitions,
    config: SupportSettings | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
) -> tuple[Support, list[dict[str, Any]]]:
    """Learn v by telling pairs of the log from moved ones; the best on held-out pairs is kept."""
    config = config or SupportSettings()
    statistics = Statistics.of(train)
    init_key, fit_key, check_key = jax.random.split(key, 3)
    sizes: dict[str, Any] = {"width": config.width, "depth": config.depth, "activation": config.activation}
    width_in = train.obs_dim + train.action_dim
    network = make_at_once(lambda key: MLP(width_in, 1, key=key, **sizes), init_key)
    inputs = InputScaling.of(statistics.obs, statistics.action)
    support = Support(network, inputs, config.weight, config.most)
    held = Batch.of(holdout)

    def error(support: Support, batch: Batch, key: PRNGKeyArray) -> Array:
        pairs = jax.vmap(support.inputs.pair)(batch.obs, batch.action)
        keys = jax.random.split(key, len(pairs))
        negatives = jax.vmap(lambda pair, k: moved(pair, train.obs_dim, config, key=k))(pairs, keys)
        odds = jax.vmap(support.log_odds)
        return jax.nn.softplus(odds(pairs)).mean() + jax.nn.softplus(-odds(negatives)).mean()

    def loss(support: Support, data: Batch, key: PRNGKeyArray) -> tuple[Array, dict[str, Array]]:
        draw_key, move_key = jax.random.split(key)
        return error(support, data.draw(config.batch_size, key=draw_key), move_key), {}

    return minimise(
        loss,
        support,
        train,
        config,
        key=fit_key,
        schedule="cosine",
        validate=eqx.filter_jit(lambda support: {"score": error(support, held, check_key)}),
        early_stopping=EarlyStopping(patience=config.patience),
        folder=folder,
        label="support of the log",
    )

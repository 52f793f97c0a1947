"""Reward and termination of imagined transitions: small networks on (s, a, s').

A log may not say what came after the rows that ended the task. Rewards and ends are then predicted from
(s, a) alone, so that those rows, often the ones that matter most, are learned from like all others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.batching import batched
from mcetm.nn.members import make_at_once
from mcetm.nn.mlp import MLP, Activation
from mcetm.nn.scaling import InputScaling, Scaling
from mcetm.settings import Positive, Rate, settings
from mcetm.training import EarlyStopping, minimise
from mcetm.training.batches import Batch


@settings
class HeadSettings:
    """Sizes that a laptop trains; the paper has two hidden layers of 256 and Adam at 1e-4."""

    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    activation: Activation = "relu"
    """The activation between layers."""
    batch_size: Positive = 256
    """Transitions of a minibatch."""
    learning_rate: Rate = 1e-3
    """Of Adam."""
    steps: Positive = 4000
    """Updates at most."""
    patience: Positive = 5
    """Validations without improvement after which training stops; one every 1000 steps."""


class Head(eqx.Module):
    """A number for a transition, in raw units: a reward, or the log-odds that the task ended."""

    network: MLP
    inputs: InputScaling
    output_scale: Scaling
    sees_next: bool = eqx.field(static=True, default=True)
    """Whether s' is looked at."""

    @property
    def widths(self) -> tuple[int, int]:
        """Of observations and actions."""
        return self.inputs.widths

    @functools.partial(batched, arrays=3)
    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Float[Array, ""]:
        """The prediction for transitions, for any leading batch axes."""
        inputs = self.inputs
        seen = inputs.triple(obs, action, next_obs) if self.sees_next else inputs.pair(obs, action)
        return self.output_scale.denormalize(self.network(seen))[0]


class TerminationRule(eqx.Module):
    """Ends an imagined episode where a task's own rule on next states says so."""

    rule: Callable[[Any], Any]

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Bool[Array, ""]:
        """Whether the task ended with this transition."""
        return self.rule(next_obs)


class LearnedTermination(eqx.Module):
    """Ends an imagined episode where a classifier finds an end more likely than not."""

    log_odds: Head

    def __call__(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Bool[Array, ""]:
        """Whether the task ended with this transition."""
        return self.log_odds(obs, action, next_obs) > 0.0


def fit_reward(
    train: Transitions,
    holdout: Transitions,
    config: HeadSettings | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
) -> tuple[Head, list[dict[str, Any]]]:
    """A reward model, by least squares."""
    train.require("reward")
    return _fit(train, holdout, config or HeadSettings(), "reward", key=key, folder=folder)


def fit_termination(
    train: Transitions,
    holdout: Transitions,
    config: HeadSettings | None = None,
    *,
    key: PRNGKeyArray,
    folder: Path | None = None,
) -> tuple[LearnedTermination, list[dict[str, Any]]]:
    """A classifier of terminations, by logistic regression; for tasks without an analytic rule."""
    head, history = _fit(train, holdout, config or HeadSettings(), "termination", key=key, folder=folder)
    return LearnedTermination(head), history


def _fit(
    train: Transitions,
    holdout: Transitions,
    config: HeadSettings,
    target: Literal["reward", "termination"],
    *,
    key: PRNGKeyArray,
    folder: Path | None,
) -> tuple[Head, list[dict[str, Any]]]:
    statistics = Statistics.of(train)
    init_key, fit_key = jax.random.split(key)
    sees_next = bool(train.next_known.all() and holdout.next_known.all())
    inputs = train.obs_dim * (1 + sees_next) + train.action_dim
    sizes: dict[str, Any] = {"width": config.width, "depth": config.depth, "activation": config.activation}
    network = make_at_once(lambda key: MLP(inputs, 1, key=key, **sizes), init_key)
    identity = Scaling(jnp.zeros(1), jnp.ones(1))
    output = Scaling.of(statistics.reward) if target == "reward" else identity
    head = Head(network, InputScaling.of(statistics.obs, statistics.action), output, sees_next)
    held = Batch.of(holdout)

    def error(head: Head, batch: Batch) -> Array:
        predicted = jax.vmap(head)(batch.obs, batch.action, batch.next_obs)
        if target == "reward":
            # In units of the rewards' own spread, so that the learning rate suits every task.
            return (((predicted - batch.reward) / head.output_scale.std) ** 2).mean()
        return optax.sigmoid_binary_cross_entropy(predicted, batch.terminated.astype(jnp.float32)).mean()

    return minimise(
        lambda head, data, key: (error(head, data.draw(config.batch_size, key=key)), {}),
        head,
        train,
        config,
        key=fit_key,
        validate=eqx.filter_jit(lambda head: {"score": error(head, held)}),
        early_stopping=EarlyStopping(patience=config.patience),
        folder=folder,
        depends_on={"target": target} if sees_next else {"target": target, "sees_next": False},
        label=f"{target} model",
    )

"""Soft actor-critic, written once: algorithms on it bring their own targets and perhaps a regulariser.

Order of an update, as in OfflineRL-Kit: critics, actor, temperature, target critics (SAC and the model-based
algorithms), or actor, temperature, critics, target critics (CQL, COMBO, EDAC).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from mcetm.agents.critics import Critics, make_critics, polyak_update, update_critics
from mcetm.agents.learner import Minibatch, Spaces
from mcetm.nn.actor import Actor
from mcetm.nn.mlp import Initialisation, NetworkFactory
from mcetm.nn.scaling import InputScaling, Scaling, frozen
from mcetm.settings import Discount, Positive, Rate, Share, Switch, settings
from mcetm.training.metrics import Metrics
from mcetm.training.optimise import adam_at, apply_gradient, init_optimiser


@settings
class SAC:
    """Soft actor-critic, which most algorithms learn with; the defaults are MOBILE's and the paper's."""

    name: Literal["sac"] = "sac"
    """Its name in files."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    critics: Positive = 2
    """Critics, of which targets take the least."""
    subset: Positive | None = None
    """How many critics a target takes the least of, drawn anew for each update; the actor then follows the
    mean of all (REDQ). None: all, and the actor follows the least too."""
    layer_norm: Switch = False
    """Standardise the hidden layers of the critics, which keeps values from growing where no data are."""
    critic_initialisation: Initialisation = "uniform"
    """How the weights of fresh critics are drawn."""
    actor_rate: Rate = 1e-3
    """Learning rate of the actor."""
    critic_rate: Rate = 1e-3
    """Learning rate of the critics."""
    cosine: Switch = True
    """Let the actor's learning rate fall to 0 over training."""
    temperature: Rate | None = None
    """A fixed temperature; None tunes it until the entropy is −|A|."""
    temperature_rate: Rate = 1e-3
    """Learning rate of a tuned temperature."""
    most_temperature: Rate | None = 1.0
    """A tuned temperature is kept below this, as the reference codes do; None in those of CQL and COMBO."""
    actor_first: Switch = False
    """Update actor and temperature before the targets are taken."""
    discount: Discount = 0.99
    """γ: what a reward is worth one step later."""
    smoothing: Share = 0.005
    """How far target critics move towards the critics at each step."""
    batch_size: Positive = 128
    """Transitions of a minibatch."""
    steps: Positive = 5000
    """Updates."""

    def init(
        self,
        spaces: Spaces,
        *,
        regulariser: Regulariser | None = None,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> SACLearner:
        """A fresh learner."""
        return SACLearner.init(self, spaces, regulariser=regulariser, network=network, key=key)


@runtime_checkable
class Regulariser(Protocol):
    """What some algorithms add to the loss of the critics; a frozen dataclass of its settings."""

    def __call__(
        self, critics: Critics, learner: SACLearner, batch: Minibatch, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The term, summed over critics."""
        ...


class SACLearner(eqx.Module):
    """Everything that learning changes."""

    actor: Actor
    critics: Critics
    targets: Critics
    log_temperature: Float[Array, ""]
    opt_states: tuple[optax.OptState, optax.OptState, optax.OptState]
    """Of actor, critics and temperature."""
    done: Float[Array, ""]
    """Updates so far."""
    config: SAC = eqx.field(static=True)
    regulariser: Regulariser | None = eqx.field(static=True, default=None)
    chosen: Int[Array, " subset"] | None = None
    """The critics that targets take the least of; None for all."""

    @classmethod
    def init(
        cls,
        config: SAC,
        spaces: Spaces,
        *,
        regulariser: Regulariser | None = None,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> SACLearner:
        """Fresh networks."""
        statistics, low, high = spaces
        actor_key, critic_key = jax.random.split(key)
        sizes: Any = {"width": config.width, "depth": config.depth, "network": network}
        actor = Actor(Scaling.of(statistics.obs), low, high, key=actor_key, **sizes)
        inputs = InputScaling.of(statistics.obs, statistics.action)
        critics = make_critics(
            config.critics,
            inputs,
            initialisation=config.critic_initialisation,
            layer_norm=config.layer_norm,
            key=critic_key,
            **sizes,
        )
        temperature = jnp.log(
            jnp.asarray(1.0 if config.temperature is None else config.temperature, jnp.float32)
        )
        opt_state = (
            init_optimiser(_actor_optimiser(config), actor),
            init_optimiser(adam_at(config.critic_rate), critics),
            init_optimiser(adam_at(config.temperature_rate), temperature),
        )
        chosen = None if config.subset is None else jnp.arange(min(config.subset, config.critics))
        return cls(
            actor, critics, critics, temperature, opt_state, jnp.zeros(()), config, regulariser, chosen
        )

    @property
    def temperature(self) -> Float[Array, ""]:
        """α, the price of determinism."""
        return jnp.exp(self.log_temperature)

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        """A sample of the policy."""
        return self.actor.sample(obs, key=key)[0]

    def next_value(
        self, obs: Float[Array, " obs"], *, key: PRNGKeyArray, entropy: bool = False
    ) -> Float[Array, ""]:
        """Least target critic at a sampled action, with the entropy bonus where wanted."""
        action, log_probability = self.actor.sample(obs, key=key)
        targets = self.targets if self.chosen is None else self.targets.some(self.chosen)
        value = targets(obs, action).min()
        return value - self.temperature * log_probability if entropy else value

    @property
    def period(self) -> int:
        """All updates are alike."""
        return 1

    def prepare(self, batch: Minibatch, *, key: PRNGKeyArray) -> tuple[SACLearner, Metrics]:
        """The actor, where it comes first; and the choice of critics for this update's targets."""
        actor_key, choice_key = (key, key) if self.chosen is None else jax.random.split(key)
        learner, metrics = (self, {})
        if self.config.actor_first:
            learner, metrics = self._improve_actor(batch, key=actor_key)
        if self.chosen is not None:
            order = jax.random.permutation(choice_key, self.config.critics)
            learner = replace(learner, chosen=order[: len(self.chosen)])
        return learner, metrics

    def improve(
        self, batch: Minibatch, target: Float[Array, " rows"], *, key: PRNGKeyArray, turn: int = 0
    ) -> tuple[SACLearner, Metrics]:
        """The critics, the actor unless it came first, the target critics."""
        critic_key, actor_key = jax.random.split(key)
        learner, metrics = self._improve_critics(batch, target, key=critic_key)
        if not self.config.actor_first:
            learner, more = learner._improve_actor(batch, key=actor_key)
            metrics = {**metrics, **more}
        targets = polyak_update(self.targets, learner.critics, self.config.smoothing)
        return replace(learner, targets=targets, done=self.done + 1.0), metrics

    def _improve_critics(
        self, batch: Minibatch, target: Float[Array, " rows"], *, key: PRNGKeyArray
    ) -> tuple[SACLearner, Metrics]:
        rule = self.regulariser
        extra = None if rule is None else lambda critics: rule(critics, self, batch, key=key)
        critics, opt_state, metrics = update_critics(
            self.critics, self.opt_states[1], batch, target, rate=self.config.critic_rate, extra=extra
        )
        return replace(
            self, critics=critics, opt_states=(self.opt_states[0], opt_state, self.opt_states[2])
        ), metrics

    def _improve_actor(self, batch: Minibatch, *, key: PRNGKeyArray) -> tuple[SACLearner, Metrics]:
        """The actor, and the temperature where it is tuned."""
        config = self.config

        def loss(actor: Actor) -> tuple[Array, Array]:
            keys = jax.random.split(key, batch.obs.shape[0])
            chosen, log_probabilities = jax.vmap(lambda o, k: actor.sample(o, key=k))(batch.obs, keys)
            values = frozen(self.critics).of_rows(batch.obs, chosen)
            value = values.min(axis=0) if self.chosen is None else values.mean(axis=0)
            losses = jax.lax.stop_gradient(self.temperature) * log_probabilities - value
            return losses.mean(), log_probabilities.mean()

        (_, log_probability), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(self.actor)
        actor, actor_opt_state = apply_gradient(
            _actor_optimiser(config), self.actor, gradient, self.opt_states[0]
        )
        log_temperature, temperature_opt_state = self.log_temperature, self.opt_states[2]
        if config.temperature is None:
            wanted = -float(batch.action.shape[1])
            # d/d log α of −log α · (log π + wanted)
            slope = -(jax.lax.stop_gradient(log_probability) + wanted)
            log_temperature, temperature_opt_state = apply_gradient(
                adam_at(config.temperature_rate), log_temperature, slope, temperature_opt_state
            )
            if config.most_temperature is not None:
                log_temperature = jnp.minimum(log_temperature, jnp.log(config.most_temperature))
        learner = replace(
            self,
            actor=actor,
            log_temperature=log_temperature,
            opt_states=(actor_opt_state, self.opt_states[1], temperature_opt_state),
        )
        return learner, {"entropy": -log_probability, "temperature": self.temperature}


def _actor_optimiser(config: SAC) -> optax.GradientTransformation:
    rate = (
        optax.cosine_decay_schedule(config.actor_rate, config.steps) if config.cosine else config.actor_rate
    )
    return adam_at(rate)

"""Soft actor-critic, written once: every algorithm here brings its own targets and shares all the rest.

Order of an update, as in OfflineRL-Kit: critics, actor, temperature, target critics.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.errors import UserError
from mcetm.nn.actor import Actor
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import InputScaling, Scaling, frozen
from mcetm.training.optimise import begin, descend


@dataclass(frozen=True)
class SACConfig:
    """Settings shared by every SAC-based algorithm; the defaults are MOBILE's and the paper's."""

    width: int = 256
    depth: int = 2
    critics: int = 2
    actor_rate: float = 1e-4
    critic_rate: float = 3e-4
    cosine: bool = True
    """Let the actor's learning rate fall to 0 over training."""
    temperature: float | None = None
    """A fixed temperature; None tunes it until the entropy is −|A|."""
    temperature_rate: float = 1e-4
    most_temperature: float = 1.0
    """A tuned temperature is kept below this, as the reference codes do."""
    discount: float = 0.99
    smoothing: float = 0.005
    """How far target critics move towards the critics at each step."""
    batch_size: int = 256
    steps: int = 1_000_000

    def __post_init__(self) -> None:
        if self.temperature is not None and self.temperature <= 0.0:
            raise UserError(f"A fixed temperature must be above 0, not {self.temperature}.")


class Critic(eqx.Module):
    """Q(s, a) of one example."""

    network: MLP
    inputs: InputScaling

    def __call__(self, obs: Float[Array, " obs"], action: Float[Array, " action"]) -> Float[Array, ""]:
        """The value of an action."""
        return self.network(self.inputs.pair(obs, action))[0]


class SAC(eqx.Module):
    """Everything that learning changes."""

    actor: Actor
    critics: Critic
    """Leading axis: critics."""
    targets: Critic
    log_temperature: Float[Array, ""]
    moments: tuple[optax.OptState, optax.OptState, optax.OptState]
    """Of actor, critics and temperature."""
    done: Float[Array, ""]
    """Updates so far."""
    config: SACConfig = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        config: SACConfig,
        statistics: Statistics,
        low: Float[Array, " action"],
        high: Float[Array, " action"],
        *,
        key: PRNGKeyArray,
    ) -> SAC:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        actor = Actor(
            Scaling.of(statistics.obs), low, high, width=config.width, depth=config.depth, key=actor_key
        )
        inputs = InputScaling.of(statistics.obs, statistics.action)
        wide = inputs.obs.mean.shape[0] + inputs.action.mean.shape[0]
        make = lambda k: Critic(MLP(wide, 1, width=config.width, depth=config.depth, key=k), inputs)  # noqa: E731
        critics = eqx.filter_vmap(make)(jax.random.split(critic_key, config.critics))
        temperature = jnp.log(
            jnp.asarray(1.0 if config.temperature is None else config.temperature, jnp.float32)
        )
        moments = (
            begin(_actor_optimiser(config), actor),
            begin(optax.adam(config.critic_rate), critics),
            begin(optax.adam(config.temperature_rate), temperature),
        )
        return cls(actor, critics, critics, temperature, moments, jnp.zeros(()), config)

    @property
    def temperature(self) -> Float[Array, ""]:
        """α, the price of determinism."""
        return jnp.exp(self.log_temperature)

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray | None = None) -> Float[Array, " action"]:
        """An action: the mode, or with a key a sample."""
        return self.actor.mode(obs) if key is None else self.actor.sample(obs, key=key)[0]

    def next_value(
        self, obs: Float[Array, " obs"], *, key: PRNGKeyArray, entropy: bool = False
    ) -> Float[Array, ""]:
        """Least target critic at a sampled action, with the entropy bonus where wanted."""
        action, log_probability = self.actor.sample(obs, key=key)
        value = values(self.targets, obs, action).min()
        return value - self.temperature * log_probability if entropy else value

    def update(
        self,
        obs: Float[Array, "batch obs"],
        action: Float[Array, "batch action"],
        target: Float[Array, " batch"],
        *,
        key: PRNGKeyArray,
    ) -> tuple[SAC, dict[str, Array]]:
        """One step of critics, actor, temperature and target critics."""
        config = self.config
        target = jax.lax.stop_gradient(target)

        def critic_loss(critics: Critic) -> tuple[Array, Array]:
            found = jax.vmap(lambda o, a: values(critics, o, a))(obs, action)
            return ((found - target[:, None]) ** 2).mean(axis=0).sum(), found.mean()

        (critic, q), gradient = eqx.filter_value_and_grad(critic_loss, has_aux=True)(self.critics)
        critics, critic_moments = descend(
            optax.adam(config.critic_rate), self.critics, gradient, self.moments[1]
        )

        def actor_loss(actor: Actor) -> tuple[Array, Array]:
            def one(obs: Array, key: PRNGKeyArray) -> tuple[Array, Array]:
                chosen, log_probability = actor.sample(obs, key=key)
                value = values(frozen(critics), obs, chosen).min()
                return jax.lax.stop_gradient(self.temperature) * log_probability - value, log_probability

            losses, log_probabilities = jax.vmap(one)(obs, jax.random.split(key, obs.shape[0]))
            return losses.mean(), log_probabilities.mean()

        (_, log_probability), gradient = eqx.filter_value_and_grad(actor_loss, has_aux=True)(self.actor)
        actor, actor_moments = descend(_actor_optimiser(config), self.actor, gradient, self.moments[0])
        log_temperature, temperature_moments = self.log_temperature, self.moments[2]
        if config.temperature is None:
            wanted = -float(action.shape[1])
            # d/d log α of −log α · (log π + wanted)
            slope = -(jax.lax.stop_gradient(log_probability) + wanted)
            log_temperature, temperature_moments = descend(
                optax.adam(config.temperature_rate), log_temperature, slope, temperature_moments
            )
            log_temperature = jnp.minimum(log_temperature, jnp.log(config.most_temperature))
        follow = lambda old, new: (  # noqa: E731
            old + config.smoothing * (new - old) if eqx.is_inexact_array(new) else new
        )
        targets = jax.tree_util.tree_map(follow, self.targets, critics)
        moments = (actor_moments, critic_moments, temperature_moments)
        metrics = {
            "critic_loss": critic,
            "q": q,
            "target": target.mean(),
            "entropy": -log_probability,
            "temperature": self.temperature,
        }
        state = SAC(actor, critics, targets, log_temperature, moments, self.done + 1.0, config)
        return state, metrics


def values(critics: Critic, obs: Array, action: Array) -> Float[Array, " critics"]:
    """Each critic's value of an action."""
    return eqx.filter_vmap(lambda critic: critic(obs, action))(critics)


def _actor_optimiser(config: SACConfig) -> optax.GradientTransformation:
    rate = (
        optax.cosine_decay_schedule(config.actor_rate, config.steps) if config.cosine else config.actor_rate
    )
    return optax.adam(rate)

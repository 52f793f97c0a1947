"""TD3+BC (Fujimoto and Gu, 2021): a deterministic actor that values its actions and stays near the log's.

Any target can stand behind it: with MC-ETM's it is MC-ETM on another policy learner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.critics import Critics, make_critics, polyak_update, update_critics
from mcetm.agents.learner import Minibatch, Spaces
from mcetm.nn.actor import Actor
from mcetm.nn.mlp import NetworkFactory
from mcetm.nn.scaling import InputScaling, Scaling, frozen
from mcetm.settings import Discount, Positive, Rate, Share, Weight, settings
from mcetm.training.metrics import Metrics
from mcetm.training.optimise import adam_at, apply_gradient, init_optimiser


@settings
class TD3:
    """TD3 with a term that clones the log's actions; the defaults are its authors'."""

    name: Literal["td3"] = "td3"
    """Its name in files."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    actor_rate: Rate = 1e-3
    """Learning rate of the actor."""
    critic_rate: Rate = 1e-3
    """Learning rate of the critics."""
    value_weight: Weight = 2.5
    """α: how much a value counts against the distance from the log's action; towards 0 it is cloning."""
    noise: Weight = 0.2
    """Of target actions, in units of half the action range."""
    noise_clip: Weight = 0.5
    """The most noise of a target action, in the same units."""
    delay: Positive = 2
    """Updates of the critics for one of the actor and of all target networks."""
    discount: Discount = 0.99
    """γ: what a reward is worth one step later."""
    smoothing: Share = 0.005
    """How far target networks move towards the trained ones at each of their updates."""
    batch_size: Positive = 128
    """Transitions of a minibatch."""
    steps: Positive = 5000
    """Updates of the critics."""

    def init(
        self,
        spaces: Spaces,
        *,
        regulariser: None = None,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> TD3Learner:
        """A fresh learner."""
        return TD3Learner.init(self, spaces, network=network, key=key)


class TD3Learner(eqx.Module):
    """Everything that learning changes."""

    actor: Actor
    """Its mode is the policy; its spread is not used."""
    slow_actor: Actor
    critics: Critics
    targets: Critics
    opt_states: tuple[optax.OptState, optax.OptState]
    """Of actor and critics."""
    done: Float[Array, ""]
    config: TD3 = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        config: TD3,
        spaces: Spaces,
        *,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> TD3Learner:
        """Fresh networks."""
        statistics, low, high = spaces
        actor_key, critic_key = jax.random.split(key)
        sizes: Any = {"width": config.width, "depth": config.depth, "network": network}
        actor = Actor(Scaling.of(statistics.obs), low, high, key=actor_key, **sizes)
        inputs = InputScaling.of(statistics.obs, statistics.action)
        critics = make_critics(2, inputs, key=critic_key, **sizes)
        opt_state = (
            init_optimiser(adam_at(config.actor_rate), actor),
            init_optimiser(adam_at(config.critic_rate), critics),
        )
        return cls(actor, actor, critics, critics, opt_state, jnp.zeros(()), config)

    @property
    def period(self) -> int:
        """Updates of the critics for one of the actor."""
        return self.config.delay

    def prepare(self, batch: Minibatch, *, key: PRNGKeyArray) -> tuple[TD3Learner, Metrics]:
        """Nothing."""
        return self, {}

    def next_value(
        self, obs: Float[Array, " obs"], *, key: PRNGKeyArray, entropy: bool = False
    ) -> Float[Array, ""]:
        """Least target critic at the slow actor's action with a little noise; there is no entropy."""
        return self.targets(obs, self._noisy(self.slow_actor, obs, key=key)).min()

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        """The actor's action with the noise of target actions: rollouts should not all be the same."""
        return self._noisy(self.actor, obs, key=key)

    def _noisy(self, actor: Actor, obs: Array, *, key: PRNGKeyArray) -> Float[Array, " action"]:
        unit = actor.unit(actor.mode(obs))
        noise = self.config.noise * jax.random.normal(key, unit.shape)
        noise = jnp.clip(noise, -self.config.noise_clip, self.config.noise_clip)
        return actor.bounded(jnp.clip(unit + noise, -1.0, 1.0))

    def improve(
        self, batch: Minibatch, target: Float[Array, " rows"], *, key: PRNGKeyArray, turn: int = 0
    ) -> tuple[TD3Learner, Metrics]:
        """The critics; at the last turn of a period the actor and all target networks."""
        critics, critic_opt_state, metrics = update_critics(
            self.critics, self.opt_states[1], batch, target, rate=self.config.critic_rate
        )
        learner = replace(
            self, critics=critics, opt_states=(self.opt_states[0], critic_opt_state), done=self.done + 1.0
        )
        return (learner._improve_actor(batch) if turn == self.period - 1 else learner), metrics

    def _improve_actor(self, batch: Minibatch) -> TD3Learner:
        """The actor, and the slow copies of everything."""
        critic = frozen(self.critics).only(0)

        def loss(actor: Actor) -> Array:
            action = jax.vmap(actor.mode)(batch.obs)
            value = critic.of_rows(batch.obs, action)[0]
            scale = jax.lax.stop_gradient(self.config.value_weight / jnp.abs(value).mean())
            apart = (jax.vmap(actor.unit)(action) - jax.vmap(actor.unit)(batch.action))[: batch.real]
            return (apart**2).sum() / max(1, apart.size) - scale * value.mean()

        gradient = eqx.filter_grad(loss)(self.actor)
        actor, opt_state = apply_gradient(
            adam_at(self.config.actor_rate), self.actor, gradient, self.opt_states[0]
        )
        return replace(
            self,
            actor=actor,
            slow_actor=polyak_update(self.slow_actor, actor, self.config.smoothing),
            targets=polyak_update(self.targets, self.critics, self.config.smoothing),
            opt_states=(opt_state, self.opt_states[1]),
        )

"""IQL (Kostrikov et al., 2021): values of the best actions in the log, found without leaving it.

V is an upper expectile of Q over the log's actions, Q regresses on r + γ V(s'), and the actor clones the
actions of the log, each weighted by how much better than V it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import Algorithm
from mcetm.agents.critics import Critics, make_critics, polyak_update, update_critics
from mcetm.agents.learner import Learner, Minibatch, Spaces
from mcetm.data.transitions import Transitions
from mcetm.nn.actor import LOG_STD_RANGE, Actor
from mcetm.nn.mlp import MLP, NetworkFactory
from mcetm.nn.scaling import InputScaling, Scaling
from mcetm.settings import Discount, Fraction, Positive, Rate, Share, Switch, Weight, settings
from mcetm.training.metrics import Metrics, Rows
from mcetm.training.optimise import adam_at, apply_gradient, init_optimiser


@settings
class IQL(Algorithm):
    """Implicit Q-learning: values by expectiles of the log, and a policy that copies its better actions."""

    label: ClassVar[str] = "IQL"

    name: Literal["iql"] = "iql"
    """Its name in files and on the command line."""
    width: Positive = 64
    """Units of each hidden layer."""
    depth: Positive = 2
    """Hidden layers."""
    learning_rate: Rate = 1e-3
    """Of actor, critics and V; the actor's falls to 0 over training."""
    expectile: Fraction = 0.7
    """How far V leans towards the best actions of the log; 0.5 is their mean."""
    inverse_temperature: Weight = 3.0
    """How much more a better action counts when the actor clones it."""
    most_weight: Rate = 100.0
    """Bound on how much an action counts."""
    discount: Discount = 0.99
    """γ: what a reward is worth one step later."""
    smoothing: Share = 0.005
    """How far target critics move towards the critics at each step."""
    standardise: Switch = True
    """Networks see observations and actions in spreads of the log; the authors' see them as they are."""
    batch_size: Positive = 128
    """Transitions of a minibatch."""
    steps: Positive = 5000
    """Updates."""

    def make_learner(self, spaces: Spaces, *, network: NetworkFactory | None = None, key: Any) -> Learner:
        """Fresh networks."""
        return IQLLearner.init(self, spaces, network=network, key=key)

    def reward_scale(self, log: Transitions) -> float:
        """The inverse temperature then means the same on every task."""
        return reward_scale(log)


class Value(eqx.Module):
    """V(s) of one example."""

    network: Callable[[Array], Array]
    obs_scale: Scaling

    def __call__(self, obs: Float[Array, " obs"]) -> Float[Array, ""]:
        """The value of a state."""
        return self.network(self.obs_scale.normalize(obs))[0]


class IQLLearner(eqx.Module):
    """Everything that learning changes."""

    actor: Actor
    """A Gaussian around its mode; its own spread, which depends on the state, is not used."""
    log_std: Float[Array, " action"]
    critics: Critics
    targets: Critics
    value: Value
    opt_states: tuple[optax.OptState, optax.OptState, optax.OptState]
    """Of actor with its spread, critics and V."""
    done: Float[Array, ""]
    config: IQL = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        config: IQL,
        spaces: Spaces,
        *,
        network: NetworkFactory | None = None,
        key: PRNGKeyArray,
    ) -> IQLLearner:
        """Fresh networks."""
        statistics, low, high = spaces
        actor_key, critic_key, value_key = jax.random.split(key, 3)
        sizes: Any = {"width": config.width, "depth": config.depth, "initialisation": "orthogonal"}
        inputs = InputScaling.of(statistics.obs, statistics.action)
        if not config.standardise:
            inputs = inputs.identity
        scale = inputs.obs
        actor = Actor(scale, low, high, network=network, key=actor_key, **sizes)
        critics = make_critics(2, inputs, network=network, key=critic_key, **sizes)
        make = network or partial(MLP, **sizes)
        value = Value(make(scale.mean.shape[0], 1, key=value_key), scale)
        log_std = jnp.zeros(low.shape[0])
        opt_state = (
            init_optimiser(_actor_optimiser(config), (actor, log_std)),
            init_optimiser(adam_at(config.learning_rate), critics),
            init_optimiser(adam_at(config.learning_rate), value),
        )
        return cls(actor, log_std, critics, critics, value, opt_state, jnp.zeros(()), config)

    @property
    def period(self) -> int:
        """All updates are alike."""
        return 1

    def prepare(self, batch: Minibatch, *, key: PRNGKeyArray) -> tuple[IQLLearner, Metrics]:
        """V, against the target critics."""
        best = self.targets.of_rows(batch.obs, batch.action).min(axis=0)

        def loss(value: Value) -> tuple[Array, Array]:
            above = best - jax.vmap(value)(batch.obs)
            weight = jnp.where(above < 0.0, 1.0 - self.config.expectile, self.config.expectile)
            errors = weight * above**2
            return errors.mean(), errors

        (_, errors), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(self.value)
        value, opt_state = apply_gradient(
            adam_at(self.config.learning_rate), self.value, gradient, self.opt_states[2]
        )
        return replace(self, value=value, opt_states=(*self.opt_states[:2], opt_state)), {
            "value_loss": Rows(errors)
        }

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        """The actor's action."""
        return self.actor.mode(obs)

    def next_value(
        self, obs: Float[Array, " obs"], *, key: PRNGKeyArray, entropy: bool = False
    ) -> Float[Array, ""]:
        """V: no action is ever sampled."""
        return self.value(obs)

    def improve(
        self, batch: Minibatch, target: Float[Array, " rows"], *, key: PRNGKeyArray, turn: int = 0
    ) -> tuple[IQLLearner, Metrics]:
        """The critics, the actor, the target critics."""
        critics, critic_opt_state, metrics = update_critics(
            self.critics, self.opt_states[1], batch, target, rate=self.config.learning_rate
        )
        best = self.targets.of_rows(batch.obs, batch.action).min(axis=0)
        advantage = best - jax.vmap(self.value)(batch.obs)
        weight = jnp.exp(self.config.inverse_temperature * advantage)
        weight = jax.lax.stop_gradient(jnp.minimum(weight, self.config.most_weight))

        def actor_loss(parts: tuple[Actor, Array]) -> Array:
            actor, log_std = parts
            log_std = jnp.clip(log_std, *LOG_STD_RANGE)
            off = jax.vmap(lambda o, a: actor.unit(a) - actor.unit(actor.mode(o)))(batch.obs, batch.action)
            log_probability = -0.5 * (off / jnp.exp(log_std)) ** 2 - log_std - 0.5 * jnp.log(2.0 * jnp.pi)
            return -(weight * log_probability.sum(axis=1)).mean()

        gradient = eqx.filter_grad(actor_loss)((self.actor, self.log_std))
        (actor, log_std), actor_opt_state = apply_gradient(
            _actor_optimiser(self.config), (self.actor, self.log_std), gradient, self.opt_states[0]
        )
        learner = replace(
            self,
            actor=actor,
            log_std=log_std,
            critics=critics,
            targets=polyak_update(self.targets, critics, self.config.smoothing),
            opt_states=(actor_opt_state, critic_opt_state, self.opt_states[2]),
            done=self.done + 1.0,
        )
        # One over it is how many times more rows a minibatch would need to say as much with equal weights.
        effective = weight.mean() ** 2 / (weight**2).mean()
        return learner, {**metrics, "weight": Rows(weight), "effective_share": effective}


def _actor_optimiser(config: IQL) -> optax.GradientTransformation:
    return adam_at(optax.cosine_decay_schedule(config.learning_rate, config.steps))


def reward_scale(log: Transitions) -> float:
    """1000 over the range of episode returns: the temperature then means the same on every task.

    1 where all returns are equal.
    """
    width = float(np.ptp(log.episode_returns))
    return 1000.0 / width if width > 0.0 else 1.0

"""RAMBO (Rigter et al., 2022): the model itself turns pessimistic, trained against the policy that uses it.

Between generations the ensemble takes gradient steps that make what follows the policy's actions less
valuable, while it goes on fitting the log. Each seed has a model of its own.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.agent import AgentState
from mcetm.agents.algorithm import ModelBased
from mcetm.agents.bc import BC
from mcetm.agents.learner import Learner
from mcetm.dynamics.gaussian import Gaussian, GaussianModel
from mcetm.dynamics.world import World
from mcetm.nn.scaling import frozen
from mcetm.settings import Positive, Rate, Share, Weight, settings
from mcetm.training.batches import Batch
from mcetm.training.optimise import adam_at, apply_gradient, init_optimiser


class Adversary(eqx.Module):
    """A model that learns on, and the state of its optimiser."""

    ensemble: GaussianModel
    opt_state: optax.OptState


@settings
class Adversarial:
    """How the model is trained against the policy; the authors' settings."""

    weight: Weight = 3e-4
    """Of the policy's advantage against the likelihood of the log; at 0 the model stays as it is."""
    updates: Positive = 250
    """Steps between two generations."""
    batch_size: Positive = 256
    """Transitions of a minibatch."""
    learning_rate: Rate = 3e-4
    """Of Adam."""
    horizon: Positive = 5
    """Steps that the policy takes before it starts from the log again."""
    beta: Share = 0.5
    """As in the training of the ensemble."""
    bound_weight: Weight = 0.001
    """As in the training of the ensemble."""

    def begin(self, ensemble: Any) -> Adversary:
        """Before the first step."""
        return Adversary(ensemble, init_optimiser(adam_at(self.learning_rate), ensemble.members))

    def world(self, adversary: Adversary, world: World) -> World:
        """The world as this model has it."""
        return eqx.tree_at(lambda w: w.model, world, frozen(adversary.ensemble))

    def __call__(
        self, agent: AgentState, data: Batch, world: World, *, key: PRNGKeyArray
    ) -> tuple[AgentState, World, dict[str, Array]]:
        """Train the agent's model; the world with it, and how well it still fits the log."""
        if self.weight == 0.0:
            return agent, world, {}

        def step(carry: tuple[Adversary, Array], inputs: tuple[Array, PRNGKeyArray]) -> Any:
            adversary, obs = carry
            index, step_key = inputs
            start_key, row_key, play_key = jax.random.split(step_key, 3)
            starts = data.draw(self.batch_size, key=start_key).obs
            obs = jnp.where(index % self.horizon == 0, starts, obs)
            rows = data.draw(self.batch_size, key=row_key)
            action, following, advantage = self.play(
                agent.learner, adversary.ensemble, world, obs, key=play_key
            )
            loss = lambda members: self.loss(  # noqa: E731
                GaussianModel(members, adversary.ensemble.elites), rows, obs, action, following, advantage
            )
            (_, fit), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(adversary.ensemble.members)
            members, opt_state = apply_gradient(
                adam_at(self.learning_rate), adversary.ensemble.members, gradient, adversary.opt_state
            )
            ensemble = GaussianModel(members, adversary.ensemble.elites)
            return (Adversary(ensemble, opt_state), following), fit

        draw_key, loop_key = jax.random.split(key)
        arrays, static = eqx.partition(agent.model, eqx.is_array)

        def body(carry: tuple[Any, Array], inputs: tuple[Array, PRNGKeyArray]) -> Any:
            (adversary, obs), fit = step((eqx.combine(carry[0], static), carry[1]), inputs)
            return (eqx.filter(adversary, eqx.is_array), obs), fit

        first = (arrays, data.draw(self.batch_size, key=draw_key).obs)
        numbered = (jnp.arange(self.updates), jax.random.split(loop_key, self.updates))
        (arrays, _), fits = jax.lax.scan(body, first, numbered)
        adversary: Adversary = eqx.combine(arrays, static)
        return replace(agent, model=adversary), self.world(adversary, world), {"model_loss": fits.mean()}

    def play(
        self,
        learner: Learner,
        ensemble: GaussianModel,
        world: World,
        obs: Float[Array, "rows obs"],
        *,
        key: PRNGKeyArray,
    ) -> tuple[Float[Array, "rows action"], Float[Array, "rows obs"], Float[Array, " rows"]]:
        """The policy's actions, next states sampled for them, and their standardised advantages."""

        def one(obs: Array, key: PRNGKeyArray) -> tuple[Array, Array, Array]:
            act_key, draw_key = jax.random.split(key)
            action = learner.act(obs, key=act_key)
            following = ensemble.sample(obs, action, key=draw_key)
            best = learner.critics(following, learner.actor.mode(following)).min()
            value = jnp.where(world.ends(obs, action, following), 0.0, best)
            gain = world.reward(obs, action, following) + learner.config.discount * value
            return action, following, gain - learner.critics(obs, action).min()

        action, following, advantage = jax.vmap(one)(obs, jax.random.split(key, obs.shape[0]))
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        return jax.lax.stop_gradient((action, following, advantage))

    def loss(
        self,
        ensemble: GaussianModel,
        rows: Batch,
        obs: Float[Array, "rows obs"],
        action: Float[Array, "rows action"],
        following: Float[Array, "rows obs"],
        advantage: Float[Array, " rows"],
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Weight · E[log p(s'|s, a) · advantage] + the loss on the log, and the latter alone."""

        def densities(member: Gaussian) -> Float[Array, " rows"]:
            return -jax.vmap(member.energy)(obs, action, following)

        # Of all members, and then the elites': to gather weights and scatter their gradients takes longer.
        of_elites = eqx.filter_vmap(densities)(ensemble.members)[ensemble.elites]
        mixture = jax.nn.logsumexp(of_elites, axis=0) - jnp.log(float(ensemble.elites.shape[0]))
        against = (mixture * advantage).mean()

        def on_log(member: Gaussian) -> Array:
            found = lambda row: member.loss(row, beta=self.beta, bound_weight=self.bound_weight)[0]  # noqa: E731
            known = rows.next_known
            standing = replace(rows, next_obs=rows.next_or_same)
            losses = jnp.where(known, jax.vmap(found)(standing), 0.0)
            return losses.sum() / jnp.maximum(known.sum(dtype=losses.dtype), 1.0)

        fit = eqx.filter_vmap(on_log)(ensemble.members).sum()
        return self.weight * against + fit, fit


@settings
class RAMBO(ModelBased):
    """RAMBO: a policy learns in a model that is trained against it, and begins as a clone of the log."""

    label: ClassVar[str] = "RAMBO"
    needs_density: ClassVar[bool] = True
    entropy_backup: ClassVar[bool] = True

    name: Literal["rambo"] = "rambo"
    """Its name in files and on the command line."""
    adversarial: Weight = 3e-4
    """Weight of the policy's advantage in the model's loss; at 0 the model stays as it is."""
    clone: BC = field(default_factory=BC)
    """Behaviour cloning of the first actor, on samples."""

    @property
    def cloning(self) -> BC:
        """The actor begins as a clone."""
        return self.clone

    @property
    def adversary(self) -> Adversarial:
        """As many steps of the model as updates between generations."""
        return Adversarial(weight=self.adversarial, updates=self.rollout.every, horizon=self.rollout.horizon)

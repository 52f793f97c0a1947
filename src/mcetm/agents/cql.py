"""CQL (Kumar et al., 2020): values of actions unknown to the log are pushed down, of its own ones up.

As the regulariser of SAC's critics it is CQL on the log alone, and COMBO (Yu et al., 2021) on a mixture with
imagined transitions: pushed down at all states, up on recorded transitions only.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.critics import Critic, values
from mcetm.agents.learner import Minibatch
from mcetm.agents.sac import SAC
from mcetm.nn.actor import Actor
from mcetm.nn.scaling import frozen


@dataclass(frozen=True)
class Conservative:
    """weight · (log Σ exp Q(s, ·) − Q(s, a)), the sum over actions estimated by importance sampling."""

    weight: float = 5.0
    repeats: int = 10
    """Actions of each kind: uniform, the policy's at s, the policy's at s'."""
    kit_compat: bool = False
    """As OfflineRL-Kit ships it: the log-sum-exp runs over one action of each kind, then averages repeats."""

    def __call__(
        self, critics: Critic, learner: SAC, batch: Minibatch, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The term, summed over critics; actions and their densities are not differentiated."""
        actor = frozen(learner.actor)
        keys = jax.random.split(key, batch.obs.shape[0])
        pushed = jax.vmap(lambda o, following, k: self._soft_maximum(critics, actor, o, following, key=k))(
            batch.obs, batch.next_obs, keys
        )
        if batch.real == 0:
            return self.weight * pushed.mean(axis=0).sum()
        known = batch.obs[: batch.real], batch.action[: batch.real]
        shown = jax.vmap(lambda o, a: values(critics, o, a))(*known)
        return self.weight * (pushed.mean(axis=0) - shown.mean(axis=0)).sum()

    def _soft_maximum(
        self, critics: Critic, actor: Actor, obs: Array, next_obs: Array, *, key: PRNGKeyArray
    ) -> Float[Array, " critics"]:
        """Log Σ exp of each critic at one state."""
        uniform_key, now_key, then_key = jax.random.split(key, 3)
        unit = jax.random.uniform(uniform_key, (self.repeats, actor.centre.shape[0]), minval=-1.0)
        sample = jax.vmap(lambda o, k: actor.sample(o, key=k), in_axes=(None, 0))
        # The policy's actions at s' are weighed at s: neighbours of what the policy does now.
        now, now_density = sample(obs, jax.random.split(now_key, self.repeats))
        then, then_density = sample(next_obs, jax.random.split(then_key, self.repeats))
        actions = jnp.stack([jax.vmap(actor.bounded)(unit), now, then])
        # Densities over (−1, 1), like the actor's.
        uniform_density = jnp.full(self.repeats, -unit.shape[1] * jnp.log(2.0))
        densities = jax.lax.stop_gradient(jnp.stack([uniform_density, now_density, then_density]))
        found = jax.vmap(jax.vmap(lambda a: values(critics, obs, a)))(jax.lax.stop_gradient(actions))
        logits = found - densities[..., None]
        if self.kit_compat:
            return jax.nn.logsumexp(logits, axis=0).mean(axis=0)
        return jax.nn.logsumexp(logits, axis=(0, 1))

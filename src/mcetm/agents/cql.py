"""CQL (Kumar et al., 2020): values of actions unknown to the log are pushed down, of its own ones up.

As the regulariser of SAC's critics it is CQL on the log alone, and COMBO (Yu et al., 2021) on a mixture with
imagined transitions: pushed down at all states, up on recorded transitions only.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import OnSAC
from mcetm.agents.critics import Critics
from mcetm.agents.learner import Minibatch
from mcetm.agents.sac import Regulariser, SACLearner
from mcetm.nn.actor import Actor
from mcetm.settings import Positive, Switch, Weight, settings

KINDS = ("uniform", "of the policy at s", "of the policy at s'")


@settings
class Conservative:
    """weight · (log Σ exp Q(s, ·) − Q(s, a)), the sum over actions estimated by importance sampling."""

    weight: Weight = 5.0
    """Of this term beside the Bellman error."""
    repeats: Positive = 10
    """Actions of each of `KINDS`."""
    kit_compat: Switch = False
    """As OfflineRL-Kit ships it: the log-sum-exp runs over one action of each kind, then averages repeats."""

    def __call__(
        self, critics: Critics, learner: SACLearner, batch: Minibatch, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """The term, summed over critics; actions and their densities are not differentiated."""
        keys = jax.random.split(key, batch.obs.shape[0])
        choose = lambda o, following, k: self._actions(learner.actor, o, following, key=k)  # noqa: E731
        chosen, densities = jax.lax.stop_gradient(jax.vmap(choose)(batch.obs, batch.next_obs, keys))
        found = critics.of_actions(batch.obs, chosen)
        logits = (found - densities).reshape(*found.shape[:2], len(KINDS), self.repeats)
        if self.kit_compat:
            pushed = jax.nn.logsumexp(logits, axis=2).mean(axis=2)
        else:
            pushed = jax.nn.logsumexp(logits, axis=(2, 3))
        if batch.real == 0:
            return self.weight * pushed.mean(axis=1).sum()
        shown = critics.of_rows(batch.obs[: batch.real], batch.action[: batch.real])
        return self.weight * (pushed.mean(axis=1) - shown.mean(axis=1)).sum()

    def _actions(
        self, actor: Actor, obs: Array, next_obs: Array, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, "actions action"], Float[Array, " actions"]]:
        """Actions to compare at one state, kind after kind, and the log-densities they were drawn from."""
        uniform_key, now_key, then_key = jax.random.split(key, 3)
        unit = jax.random.uniform(uniform_key, (self.repeats, actor.action_scale.mean.shape[0]), minval=-1.0)
        sample = lambda o, key: jax.vmap(lambda k: actor.sample(o, key=k))(  # noqa: E731
            jax.random.split(key, self.repeats)
        )
        # The policy's actions at s' are weighed at s: neighbours of what the policy does now.
        now, now_density = sample(obs, now_key)
        then, then_density = sample(next_obs, then_key)
        # Densities over (−1, 1), like the actor's.
        uniform_density = jnp.full(self.repeats, -unit.shape[1] * jnp.log(2.0))
        actions = jnp.concatenate([jax.vmap(actor.bounded)(unit), now, then])
        return actions, jnp.concatenate([uniform_density, now_density, then_density])


@settings
class CQL(OnSAC):
    """Conservative Q-learning: SAC on the log alone, with low values for actions outside the log."""

    label: ClassVar[str] = "CQL"

    name: Literal["cql"] = "cql"
    """Its name in files and on the command line."""
    conservative: Conservative = field(default_factory=Conservative)
    """How values of unknown actions are pushed down."""

    @property
    def regulariser(self) -> Regulariser:
        """The conservative term."""
        return self.conservative

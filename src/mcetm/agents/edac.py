"""EDAC (An et al., 2021): many critics, of which the least counts, kept from agreeing in their gradients."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.critics import Critic
from mcetm.agents.learner import Minibatch
from mcetm.agents.sac import SAC


@dataclass(frozen=True)
class Diverse:
    """weight · how much the critics' gradients in the action point the same way; 0 is SAC-N."""

    weight: float = 1.0

    def __call__(
        self, critics: Critic, learner: SAC, batch: Minibatch, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        """Σ over pairs i ≠ j of the cosine, averaged over rows, divided by one less than the critics."""

        def slopes(critic: Critic) -> Float[Array, "rows action"]:
            return jax.grad(lambda actions: jax.vmap(critic)(batch.obs, actions).sum())(batch.action)

        slope = eqx.filter_vmap(slopes)(critics)
        # The square root of a sum has no slope at 0, where a gradient may vanish.
        length = jnp.sqrt((slope**2).sum(axis=2, keepdims=True) + 1e-20)
        unit = slope / (length + 1e-10)
        # Σ over i ≠ j of uᵢ · uⱼ: of all pairs, less each with itself.
        together = (unit.sum(axis=0) ** 2).sum(axis=1) - (unit**2).sum(axis=(0, 2))
        return self.weight * together.mean() / max(1, learner.config.critics - 1)

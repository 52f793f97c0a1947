"""EMPO (Chen et al., 2024): an energy-based model, and rewards lowered by how far its members lie apart.

The penalty is scaled by the value of the next state, between none at 0 and all at 100 ("penalty decay" in the
authors' code), so that a policy that has learned nothing yet is not kept from moving.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.agent import recorded_target
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class EMPO:
    """λ and the decay; the world must measure the spread over `members`."""

    penalty: float = 2.0
    decay: float | None = 100.0
    """The value from which the penalty is whole; None: always."""
    entropy_backup: bool = True

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        weight = self.penalty * (1.0 if self.decay is None else jnp.clip(value / self.decay, 0.0, 1.0))
        reward = row.after.reward - weight * row.after.uncertainty
        target = bellman_target(reward, row.after.terminated, value, learner.config.discount)
        return target, {"uncertainty": row.after.uncertainty}

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """Recorded transitions are not penalised."""
        return recorded_target(learner, row, value)

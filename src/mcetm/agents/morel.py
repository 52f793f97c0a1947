"""MOReL (Kidambi et al., 2020): where the model is not known, the task is over and worth the least there is.

Its original policy learner is a natural policy gradient in the model; here the same pessimistic MDP is
learned by SAC, like everything else, so that only the pessimism differs.
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
class MOReL:
    """The worth of leaving what is known; the paper pays −κ for every step there instead."""

    value_floor: float = 0.0
    entropy_backup: bool = False

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition; the world must have a threshold."""
        known = bellman_target(row.after.reward, row.after.terminated, value, learner.config.discount)
        target = jnp.where(row.after.truncated, self.value_floor, known)
        return target, {"truncated": row.after.truncated.astype(target.dtype)}

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """What was recorded is known."""
        return recorded_target(learner, row, value)

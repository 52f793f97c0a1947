"""MOBILE (Sun et al., 2023): targets penalised by the spread of Q-values over the members' next states."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.agent import candidate_values, recorded_target
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import mobile_target, spread_penalty
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class MOBILE:
    """λ and the clamp."""

    penalty: float = 1.0
    value_floor: float = 0.0
    """The least target: 0 in the reference code."""
    entropy_backup: bool = False

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        values = candidate_values(learner, row, key=key)
        target = mobile_target(
            row.after.reward,
            row.after.terminated,
            value,
            values,
            weight=self.penalty,
            discount=learner.config.discount,
            floor=self.value_floor,
        )
        return target, {"spread": spread_penalty(values.mean(axis=1))}

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """Recorded transitions are not penalised."""
        return jnp.maximum(recorded_target(learner, row, value), self.value_floor)

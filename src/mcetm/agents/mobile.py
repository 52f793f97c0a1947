"""MOBILE (Sun et al., 2023): targets penalised by the spread of Q-values over the members' next states."""

from __future__ import annotations

from dataclasses import dataclass

import jax
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
        self, learner: Learner, row: Experience, *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        value_key, candidate_key = jax.random.split(key)
        values = candidate_values(learner, row, key=candidate_key)
        target = mobile_target(
            row.after.reward,
            row.after.terminated,
            learner.next_value(row.after.next_obs, key=value_key, entropy=self.entropy_backup),
            values,
            weight=self.penalty,
            discount=learner.config.discount,
            floor=self.value_floor,
        )
        return target, {"spread": spread_penalty(values.mean(axis=1))}

    def real_target(self, learner: Learner, row: Batch, *, key: PRNGKeyArray) -> Float[Array, ""]:
        """Recorded transitions are not penalised."""
        return recorded_target(learner, row, entropy=self.entropy_backup, floor=self.value_floor, key=key)

"""MOPO (Yu et al., 2020): the reward of an imagined step is lowered by how unsure the model is of it."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.agent import recorded_target
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class MOPO:
    """λ; the world must measure an uncertainty."""

    penalty: float = 1.0
    entropy_backup: bool = True

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        reward = row.after.reward - self.penalty * row.after.uncertainty
        target = bellman_target(reward, row.after.terminated, value, learner.config.discount)
        return target, {"uncertainty": row.after.uncertainty}

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """Recorded transitions are not penalised."""
        return recorded_target(learner, row, value)

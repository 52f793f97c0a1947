"""Targets without pessimism of their own: those of model-free learners, COMBO and RAMBO."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.agent import recorded_target
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class Plain:
    """R + γ (1 − d) V(s'), for recorded and imagined transitions alike."""

    entropy_backup: bool = False

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        return bellman_target(row.after.reward, row.after.terminated, value, learner.config.discount), {}

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """The target of one recorded transition."""
        return recorded_target(learner, row, value)

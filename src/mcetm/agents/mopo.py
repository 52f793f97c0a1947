"""MOPO (Yu et al., 2020): the reward of an imagined step is lowered by how unsure the model is of it.

r − λ u(s, a) + γ (1 − d) V(s'),  u the largest spread that a member expects
"""

from __future__ import annotations

from typing import ClassVar, Literal

from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import ModelBased
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target
from mcetm.dynamics.world import View
from mcetm.settings import Weight, settings


@settings
class MOPO(ModelBased):
    """MOPO: rewards in rollouts pay for the model's uncertainty."""

    label: ClassVar[str] = "MOPO"
    entropy_backup: ClassVar[bool] = True

    name: Literal["mopo"] = "mopo"
    """Its name in files and on the command line."""
    penalty: Weight = 1.0
    """λ: the weight of the penalty."""
    uncertainty: Literal["spread", "deviation"] = "spread"
    """The largest spread that a member expects, or the largest deviation of a member's mean."""

    @property
    def view(self) -> View:
        """The uncertainty of each step."""
        return View(samples=self.samples, tested="nothing", uncertainty=self.uncertainty)

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        reward = row.after.reward - self.penalty * row.after.uncertainty
        target = bellman_target(reward, row.after.terminated, value, learner.config.discount)
        return target, {"uncertainty": row.after.uncertainty}

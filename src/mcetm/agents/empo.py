"""EMPO (Chen et al., 2024): an energy-based model, and rewards lowered by how far its members lie apart.

    r − λ(V) std_i(s'_i) + γ (1 − d) V(s')

The weight grows with the value of the next state, from 0 to all of λ at 100 ("penalty decay" in the authors'
code), so that a policy that has learned nothing yet is not kept from moving.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import ModelBased
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target
from mcetm.dynamics.world import View
from mcetm.settings import Rate, Weight, settings


@settings
class EMPO(ModelBased):
    """EMPO: rewards in an energy model's rollouts pay for the spread of its members."""

    label: ClassVar[str] = "EMPO"
    needs_energy: ClassVar[bool] = True
    entropy_backup: ClassVar[bool] = True

    name: Literal["empo"] = "empo"
    """Its name in files and on the command line."""
    penalty: Weight = 2.0
    """λ: the weight of the penalty."""
    decay: Rate | None = 100.0
    """The value from which the penalty is whole; None: always."""

    @property
    def view(self) -> View:
        """The spread over members of one sample each."""
        return View(samples=self.samples, tested="nothing", uncertainty="members")

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        weight = self.penalty * (1.0 if self.decay is None else jnp.clip(value / self.decay, 0.0, 1.0))
        reward = row.after.reward - weight * row.after.uncertainty
        target = bellman_target(reward, row.after.terminated, value, learner.config.discount)
        return target, {"uncertainty": row.after.uncertainty}

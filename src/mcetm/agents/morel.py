"""MOReL (Kidambi et al., 2020): where the model is not known, the task is over and worth the least there is.

A pair (s, a) is known where the members' predictions agree. The original policy learner is a natural policy
gradient in the model; here the same pessimistic MDP is learned by SAC, so that only the pessimism differs.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.algorithm import WithFloor
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target
from mcetm.dynamics.world import View
from mcetm.settings import settings


@settings
class MOReL(WithFloor):
    """MOReL: a rollout that leaves what is known ends there, and the step out is worth the least value."""

    label: ClassVar[str] = "MOReL"

    name: Literal["morel"] = "morel"
    """Its name in files and on the command line."""

    @property
    def view(self) -> View:
        """Rollouts end where members disagree."""
        return View(samples=self.samples, tested="disagreement", target_rule="minimum")

    def least(self, target: Float[Array, ""]) -> Float[Array, ""]:
        """What was recorded is known: no floor."""
        return target

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        known = bellman_target(row.after.reward, row.after.terminated, value, learner.config.discount)
        target = jnp.where(row.after.truncated, self.floor, known)
        return target, {"truncated": row.after.truncated.astype(target.dtype)}

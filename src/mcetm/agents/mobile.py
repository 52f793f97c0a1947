"""MOBILE (Sun et al., 2023): targets penalised by the spread of Q-values over the members' next states.

    r − λ std_i(q̄_i) + γ (1 − d) V(s'),  q̄_i = mean_j q_ij

with q_ij the value of the j-th next state of member i. One stored next state s' gives the value, all of them
the penalty, which is not discounted. The target is clamped from below.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.agents.algorithm import WithFloor
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import bellman_target, candidate_values, spread_penalty
from mcetm.settings import Positive, Weight, settings


@settings
class MOBILE(WithFloor):
    """MOBILE: targets in rollouts pay for the spread of Q over the members' next states."""

    label: ClassVar[str] = "MOBILE"

    name: Literal["mobile"] = "mobile"
    """Its name in files and on the command line."""
    penalty: Weight = 1.0
    """λ: the weight of the penalty."""
    samples: Positive = 10
    """N, next states of each member."""

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
            floor=self.floor,
        )
        return target, {"spread": spread_penalty(values.mean(axis=1))}


def mobile_target(
    reward: Float[Array, ""],
    ended: Bool[Array, ""],
    value: Float[Array, ""],
    candidate_values: Float[Array, "members samples"],
    *,
    weight: float,
    discount: float,
    floor: float,
) -> Float[Array, ""]:
    """R − λ std_i(mean_j q_ij) + γ (1 − d) V(s'), clamped from below."""
    penalty = spread_penalty(candidate_values.mean(axis=1))
    return jnp.maximum(bellman_target(reward, ended, value, discount) - weight * penalty, floor)

"""MC-ETM: the value of sampled next states, cut off where the energy is high, penalised by its spread.

target = r − λ std_i(q̄_i) + γ mean_i(q̄_i), with q̄_i the truncated mean over the samples of member i.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.agent import candidate_values, recorded_target
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.targets import SpreadOf, mcetm_target, spread_penalty
from mcetm.training.batches import Batch


@dataclass(frozen=True)
class MCETM:
    """λ, the value floor, and what the paper's ablations switch off."""

    penalty: float = 1.0
    """λ; 0 is the ablation without penalty."""
    truncate: bool = True
    """False is the ablation without truncation."""
    value_floor: float = 0.0
    """Worth of a truncated sample, and the least target: 0 in the paper, else estimated from the log."""
    spread_of: SpreadOf = "values"
    entropy_backup: bool = False

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        values = candidate_values(learner, row, entropy=self.entropy_backup, key=key)
        distrusted = row.after.distrusted & self.truncate
        target = mcetm_target(
            row.after.reward,
            values,
            row.after.ended,
            distrusted,
            weight=self.penalty,
            discount=learner.config.discount,
            floor=self.value_floor,
            spread_of=self.spread_of,
        )
        return target, {
            "spread": spread_penalty(values.mean(axis=1)),
            "truncated": distrusted.mean(dtype=values.dtype),
        }

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """Recorded transitions are neither penalised nor truncated."""
        return jnp.maximum(recorded_target(learner, row, value), self.value_floor)

"""MC-ETM: the value of sampled next states, cut off outside the trust region, penalised by its spread.

    r − λ std_i(q̄_i) + γ mean_i(q̄_i),  q̄_i = mean_j (1 − ν_ij)(1 − d_ij) q_ij   (section 4.2 of the paper)

with q_ij the value of the j-th next state of member i, d_ij whether it ends the task and ν_ij whether it lies
outside the trust region. The target is clamped from below.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from pydantic import Field

from mcetm.agents.algorithm import WithFloor
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.agents.sac import SAC
from mcetm.agents.targets import candidate_values, spread_penalty
from mcetm.agents.td3 import TD3
from mcetm.dynamics.calibrate import Rule
from mcetm.dynamics.world import View
from mcetm.settings import Number, Positive, Switch, Weight, settings

SpreadOf = Literal["values", "ends", "truncated"]


@settings
class MCETM(WithFloor):
    """λ, the value floor, and what the paper's ablations switch off."""

    label: ClassVar[str] = "MC-ETM"

    name: Literal["mcetm"] = "mcetm"
    """Its name in files and on the command line."""
    learner: Annotated[SAC | TD3, Field(discriminator="name")] = field(default_factory=SAC)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Soft actor-critic, or TD3 with its clone term."""
    penalty: Weight = 1.0
    """λ; 0 is the ablation without penalty."""
    truncate: Switch = True
    """False is the ablation without truncation."""
    samples: Positive = 10
    """N, next states of each member."""
    value_floor: Number | None = None
    """Worth of a truncated sample, and the least target: 0 in the paper; None estimates it from the log."""
    spread_of: SpreadOf = "values"
    """What spreads; see `mcetm_target`."""
    rollout_rule: Rule = "minimum"
    """When a rollout stops; see `Threshold.exceeded`."""
    target_rule: Rule = "minimum"
    """Which samples are cut off. The paper tests each by itself; rare false alarms then cost every target."""

    @property
    def view(self) -> View:
        """Rollouts and targets end where the model is not trusted."""
        return View(
            samples=self.samples,
            tested="next-state" if self.truncate else "nothing",
            rollout_rule=self.rollout_rule,
            target_rule=self.target_rule,
        )

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
            floor=self.floor,
            spread_of=self.spread_of,
        )
        return target, {
            "spread": spread_penalty(values.mean(axis=1)),
            "truncated": distrusted.mean(dtype=values.dtype),
        }


def mcetm_target(
    reward: Float[Array, ""],
    candidate_values: Float[Array, "members samples"],
    ended: Bool[Array, "members samples"],
    distrusted: Bool[Array, "members samples"],
    *,
    weight: float,
    discount: float,
    floor: float,
    spread_of: SpreadOf = "values",
) -> Float[Array, ""]:
    """R − λ std_i(q̄_i) + γ mean_i(q̄_i), q̄_i the mean over a member's samples.

    A sample that ends the task is worth 0, one that is not trusted (ν) is worth the floor, and no value is
    below it: with the paper's floor of 0 this is (1 − ν)(1 − d) q, clamped. `spread_of`: the paper takes the
    spread over the `truncated` means, where truncating can *lower* the penalty by more than it lowers the
    mean; otherwise truncating never raises a target. With `ends`, members that do not agree whether the task
    ends are spread by whole values, and a state near its end is as good as over; with `values`, as in MOBILE,
    what spreads is what the next states are worth.
    """
    value = jnp.maximum(candidate_values, floor)
    known = jnp.where(ended, 0.0, value)
    # Where the floor is above 0 an end is worth less than a truncation; neither may raise a value.
    kept = jnp.where(distrusted, jnp.minimum(known, floor), known)
    penalised = {"values": value, "ends": known, "truncated": kept}[spread_of]
    penalty = spread_penalty(penalised.mean(axis=1))
    return jnp.maximum(reward - weight * penalty + discount * kept.mean(), floor)

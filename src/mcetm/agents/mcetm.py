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
from mcetm.settings import Number, Positive, Rate, Switch, Weight, settings

SpreadOf = Literal["values", "ends", "truncated"]
Cut = Literal["floor", "bootstrap", "drop"]


@settings
class MCETM(WithFloor):
    """MC-ETM: imagined values are cut off outside the trust region and pay for their spread."""

    label: ClassVar[str] = "MC-ETM"

    name: Literal["mcetm"] = "mcetm"
    """Its name in files and on the command line."""
    learner: Annotated[SAC | TD3, Field(discriminator="name")] = field(default_factory=SAC)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Soft actor-critic, or TD3 with its clone term."""
    penalty: Weight = 1.0
    """λ; 0 is the ablation without penalty."""
    excess: Switch = False
    """Penalise only what the spread has beyond that of the log's own pairs."""
    truncate: Switch = True
    """False is the ablation without truncation."""
    tested: Literal["next-state", "pair", "both", "disagreement"] = "next-state"
    """What truncates: the score of next states, that of pairs (s, a), either, or members' disagreement."""
    cut: Cut = "floor"
    """What becomes of an imagined step that is not trusted, the last of its branch: `floor`, it is worth the
    least value; `bootstrap`, it keeps its ordinary target; `drop`, nothing is learned from it."""
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
    choice: Rate | None = None
    """Temperature at which a rollout goes on with a sample of low energy; None: with any."""

    @property
    def view(self) -> View:
        """Rollouts and targets end where the model is not trusted."""
        return View(
            samples=self.samples,
            tested=self.tested if self.truncate else "nothing",
            rollout_rule=self.rollout_rule,
            target_rule=self.target_rule,
            choice=self.choice,
        )

    @property
    def drops_untrusted(self) -> bool:
        """As `cut` says."""
        return self.cut == "drop"

    @property
    def needs_reference(self) -> bool:
        """As `excess` says."""
        return self.excess

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition."""
        values = candidate_values(learner, row, entropy=self.entropy_backup, key=key)
        distrusted = row.after.distrusted & (self.truncate and self.cut == "floor")
        target = mcetm_target(
            row.after.reward,
            values,
            row.after.ended,
            distrusted,
            weight=self.penalty,
            discount=learner.config.discount,
            floor=self.floor,
            spread_of=self.spread_of,
            reference=row.reference,
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
    reference: Float[Array, ""] | None = None,
) -> Float[Array, ""]:
    """R − λ std_i(q̄_i) + γ mean_i(q̄_i), q̄_i the mean over a member's samples.

    With a reference only what the spread has beyond it is penalised.

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
    if reference is not None:
        penalty = jnp.maximum(penalty - reference, 0.0)
    return jnp.maximum(reward - weight * penalty + discount * kept.mean(), floor)

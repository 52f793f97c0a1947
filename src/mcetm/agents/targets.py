"""What a critic is taught: Bellman targets of one transition, as plain equations."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mcetm.data.transitions import Transitions

SpreadOf = Literal["values", "ends", "truncated"]


def bellman_target(
    reward: Float[Array, ""], ended: Bool[Array, ""], value: Float[Array, ""], discount: float
) -> Float[Array, ""]:
    """R + γ (1 − d) V(s')."""
    return reward + discount * jnp.where(ended, 0.0, value)


def spread_penalty(means: Float[Array, " members"]) -> Float[Array, ""]:
    """The unbiased standard deviation over members; 0 for a single one."""
    return means.std(ddof=1) if means.shape[0] > 1 else jnp.zeros(())


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
    """MOBILE: one stored next state for the value, the candidates for the penalty, clamped from below.

    r − λ std_i(mean_j q_ij) + γ (1 − d) V(s'); the penalty is not discounted (Sun et al., 2023).
    """
    penalty = spread_penalty(candidate_values.mean(axis=1))
    return jnp.maximum(bellman_target(reward, ended, value, discount) - weight * penalty, floor)


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
    """MC-ETM: r − λ std_i(q̄_i) + γ mean_i(q̄_i), q̄_i the mean over a member's samples (section 4.2).

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


def estimate_value_floor(transitions: Transitions, discount: float) -> float:
    """A lower bound on values, from the rewards of a log: its least discounted return to go.

    An episode that was cut is taken to go on with its mean reward for ever; one that ended has nothing more
    to come. Never above 0, as ending is always possible to imagine.
    """
    least = 0.0
    reward = transitions.reward.astype(np.float64)
    for start, end in zip(transitions.episode_starts, transitions.episode_ends, strict=True):
        tail = 0.0 if transitions.terminated[end - 1] else reward[start:end].mean() / (1.0 - discount)
        for r in reward[start:end][::-1]:
            tail = r + discount * tail
            least = min(least, tail)
    return float(least)

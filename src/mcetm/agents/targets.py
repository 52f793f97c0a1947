"""Parts that Bellman targets are made of, as plain equations of one transition."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.data.transitions import Transitions


def bellman_target(
    reward: Float[Array, ""], ended: Bool[Array, ""], value: Float[Array, ""], discount: float
) -> Float[Array, ""]:
    """R + γ (1 − d) V(s')."""
    return reward + discount * jnp.where(ended, 0.0, value)


def candidate_values(
    learner: Learner, row: Experience, *, entropy: bool = False, key: PRNGKeyArray
) -> Float[Array, "members samples"]:
    """q_ij: the least target critic at each candidate and an action sampled there."""
    members, samples = row.after.ended.shape
    keys = jax.random.split(key, (members, samples))
    value = lambda s, k: learner.next_value(s, key=k, entropy=entropy)  # noqa: E731
    return jax.vmap(jax.vmap(value))(row.after.candidates, keys)


def spread_penalty(means: Float[Array, " members"]) -> Float[Array, ""]:
    """The unbiased standard deviation over members; 0 for a single one."""
    return means.std(ddof=1) if means.shape[0] > 1 else jnp.zeros(())


def estimate_value_floor(transitions: Transitions, discount: float) -> float:
    """A lower bound on values, from the rewards of a log: its least discounted return to go.

    An episode that was cut is taken to go on with its mean reward for ever; one that ended has nothing more
    to come. Never above 0, as ending is always possible to imagine.
    """
    return min(_least_return(block, discount) for block in transitions.blocks())


def _least_return(transitions: Transitions, discount: float) -> float:
    least = 0.0
    reward = transitions.reward.astype(np.float64)
    for start, end in zip(transitions.episode_starts, transitions.episode_ends, strict=True):
        tail = 0.0 if transitions.terminated[end - 1] else reward[start:end].mean() / (1.0 - discount)
        for r in reward[start:end][::-1]:
            tail = r + discount * tail
            least = min(least, tail)
    return float(least)

"""A dataset of transitions from finite MDPs, and its counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from mcetm_experiments.theory.mdp import FiniteMDP, Policy


class DatasetRows(NamedTuple):
    """Transitions (s, a, s'), one row of each MDP per time step."""

    state: Int[np.ndarray, "*batch rows"]
    action: Int[np.ndarray, "*batch rows"]
    next_state: Int[np.ndarray, "*batch rows"]


def collect(mdp: FiniteMDP, policy: Policy, rows: int, *, episode: int = 20, seed: int = 0) -> DatasetRows:
    """Follow a policy for so many transitions, from a new start every `episode` steps."""
    rng = np.random.default_rng(seed)
    state, kept = _draw(mdp.start, rng), []
    for step in range(rows):
        if step % episode == 0:
            state = _draw(mdp.start, rng)
        action = _draw(_rows(policy, state), rng)
        following = _draw(_rows(_rows(mdp.transition, state), action), rng)
        kept.append((state, action, following))
        state = following
    return DatasetRows(*(np.stack(column, axis=-1) for column in zip(*kept, strict=True)))


def count(data: DatasetRows, states: int, actions: int) -> Int[np.ndarray, "*batch states actions states"]:
    """n(s, a, s')."""
    *batch, rows = data.state.shape
    cell = ((data.state * actions + data.action) * states + data.next_state).reshape(-1, rows)
    size = states * actions * states
    offset = size * np.arange(len(cell))[:, None]
    counts = np.bincount((cell + offset).ravel(), minlength=size * len(cell))
    return counts.reshape(*batch, states, actions, states)


def _rows(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    """table[..., index, :] for each MDP of the batch."""
    axis = index.ndim
    expanded = index.reshape(*index.shape, *([1] * (table.ndim - index.ndim)))
    return np.take_along_axis(table, expanded, axis=axis).squeeze(axis)


def _draw(probability: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One index for each row of probabilities."""
    edges = probability.cumsum(axis=-1)
    uniform = rng.random((*probability.shape[:-1], 1)) * edges[..., -1:]
    return np.asarray((uniform >= edges).sum(axis=-1))

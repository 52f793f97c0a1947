"""What is estimated: the return of whole episodes, on the scale of the log's own episode returns.

    R = Σ γᵗ rₜ  over t < H, until the task ends

With γ = 1 this is the expected undiscounted return of an episode of at most H steps, which is what a table
of returns shows. It is finite because H is. Nothing is extrapolated from a discounted value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcetm.data.transitions import Transitions
from mcetm.errors import UserError
from mcetm.tasks.registry import Task

MOST_STEPS = 100_000
"""A horizon beyond this is a slip of the keyboard."""


@dataclass(frozen=True)
class Quantity:
    """The return that is estimated: of how many steps, and with which discount."""

    horizon: int
    """H: steps of an episode at most."""
    discount: float = 1.0
    """γ: 1 sums all rewards alike."""
    origin: str = "given"
    """Where the horizon comes from, in words."""

    @classmethod
    def of(
        cls, log: Transitions, task: Task | None, *, discount: float = 1.0, horizon: int | None = None
    ) -> Quantity:
        """The horizon that is asked for, else the task's limit, else the longest episode of the log."""
        if horizon is not None:
            if not 1 <= horizon <= MOST_STEPS:
                raise UserError(f"The horizon must be at least 1 and at most {MOST_STEPS:,}, not {horizon}.")
            return cls(horizon, discount, "given")
        if task is not None and task.time_limit is not None:
            return cls(task.time_limit, discount, f"the time limit of the task {task.name}")
        longest = int(log.episode_lengths.max())
        if longest > MOST_STEPS:
            raise UserError(
                f"The longest episode of {log.metadata.source} has {longest:,} steps, which is no horizon to "
                "estimate over; name a shorter one (horizon)."
            )
        return cls(longest, discount, "the longest episode of the log")

    @property
    def words(self) -> str:
        """What the number is, in words."""
        kind = "undiscounted return" if self.discount == 1.0 else f"return discounted by {self.discount:g}"
        return f"expected {kind} of an episode of at most {self.horizon:,} steps ({self.origin})"

    @property
    def weights(self) -> np.ndarray:
        """γᵗ for t = 0 … H − 1."""
        return self.discount ** np.arange(self.horizon, dtype=np.float64)

    @property
    def lengths(self) -> np.ndarray:
        """n(h) = Σ γᵏ over k < h, for h = 0 … H: what h steps of reward 1 are worth."""
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    def of_episodes(self, log: Transitions) -> np.ndarray:
        """The return of each episode of a log, as far as it was recorded."""
        time = times(log)
        worth = np.where(time < self.horizon, self.discount ** np.minimum(time, self.horizon), 0.0)
        return np.add.reduceat(worth * log.reward.astype(np.float64), log.episode_starts)

    def whole(self, log: Transitions) -> np.ndarray:
        """Which episodes are whole: they ended by themselves or lasted for H steps."""
        return log.terminated[log.episode_ends - 1] | (log.episode_lengths >= self.horizon)


def times(log: Transitions) -> np.ndarray:
    """The number of each row in its episode."""
    return np.arange(len(log)) - np.repeat(log.episode_starts, log.episode_lengths)


def episode_of_rows(log: Transitions) -> np.ndarray:
    """The number of the episode of each row."""
    return np.repeat(np.arange(log.num_episodes), log.episode_lengths)

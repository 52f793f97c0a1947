"""What a step can earn, by a log: those after which the task goes on, and those that end it, apart.

A step that ends the task comes once in an episode, and its reward may be like no other: a penalty for a
crash, a prize for having arrived. In one range with the others, it could be earned at every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from mcetm.data.transitions import Transitions


@dataclass(frozen=True)
class RewardRange:
    """Least and largest reward of a step, with 0 where the task can end: after that nothing is earned."""

    going: tuple[float, float]
    """Of steps after which the task goes on."""
    ending: tuple[float, float] = (0.0, 0.0)
    """Of steps that end it; 0 where none does."""

    @classmethod
    def of(cls, log: Transitions) -> RewardRange:
        """The rewards that a log has."""
        ends = bool(log.terminated.any())
        return cls(_range(log.reward[~log.terminated], ends), _range(log.reward[log.terminated], ends))

    def hold(
        self, reward: Float[np.ndarray, "*steps"], ended: Bool[np.ndarray, "*steps"]
    ) -> Float[np.ndarray, "*steps"]:
        """Rewards, each drawn into the range of its kind."""
        return np.where(ended, np.clip(reward, *self.ending), np.clip(reward, *self.going))

    def worth(self, steps: float, *, ends: float = 1.0) -> tuple[float, float]:
        """Least and largest return of so many steps and of at most so many ends of the task."""
        return (
            steps * self.going[0] + ends * min(self.ending[0], 0.0),
            steps * self.going[1] + ends * max(self.ending[1], 0.0),
        )


def _range(rewards: np.ndarray, ends: bool) -> tuple[float, float]:
    """Least and largest; 0 belongs to them where the task can end, and is all where there are none."""
    low, high = (float(rewards.min()), float(rewards.max())) if len(rewards) else (0.0, 0.0)
    return (min(low, 0.0), max(high, 0.0)) if ends else (low, high)

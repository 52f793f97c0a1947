"""Returns in an environment: whole episodes side by side, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mcetm.envs.simulate import Block, run_block
from mcetm.errors import UserError
from mcetm.tasks.policy import Policy
from mcetm.tasks.registry import Task

_LONGEST = 1000
"""Where an environment without a limit of its own is cut."""


@dataclass(frozen=True)
class Evaluation:
    """Returns and lengths of some episodes, and their normalised score where the task has one."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    task: Task

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Spread of returns over episodes; 0 for a single one."""
        return float(np.std(self.returns, ddof=1)) if len(self.returns) > 1 else 0.0

    @property
    def score(self) -> float | None:
        """Normalised mean return."""
        return None if self.task.scores is None else float(self.task.scores.normalize(self.mean))

    @property
    def score_std(self) -> float | None:
        """The spread on the normalised scale: divided by its range, never shifted."""
        return None if self.task.scores is None else float(self.task.scores.normalize_spread(self.std))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "task": self.task.name,
            "episodes": len(self.returns),
            "mean": self.mean,
            "std": self.std,
            "score": self.score,
            "score_std": self.score_std,
            "returns": list(self.returns),
            "lengths": list(self.lengths),
        }


def evaluate_policy(task: Task, policy: Policy, *, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Run whole episodes, one in each of as many environments."""
    if seed < 0:
        raise UserError(f"The seed must not be negative, and it is {seed}.")
    for what, own, wanted in (
        ("observations", getattr(policy, "obs_dim", task.obs_dim), task.obs_dim),
        ("actions", getattr(policy, "action_dim", task.action_dim), task.action_dim),
    ):
        if own != wanted:
            raise UserError(
                f"The policy has {what} of width {own}, and those of '{task.name}' have {wanted}."
            )
    block = Block(
        env_id=task.env_id,
        env_kwargs=task.env_kwargs,
        obs_dim=task.obs_dim,
        action_dim=task.action_dim,
        policies=(policy,),
        lanes=episodes,
        lane_steps=1,  # a lane always finishes its episode, so each runs exactly one
        seed=(seed, 0, 0),
        time_limit=task.time_limit or _LONGEST,
    )
    rows = run_block(block)
    ends = np.flatnonzero(rows["terminated"] | rows["truncated"]) + 1
    starts = np.concatenate([[0], ends[:-1]])
    returns = np.add.reduceat(rows["reward"].astype(np.float64), starts)
    return Evaluation(tuple(returns.tolist()), tuple((ends - starts).tolist()), task)

"""Returns in an environment: whole episodes side by side, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcetm.arguments import require, whole
from mcetm.envs.collection import MOST_PROCESSES
from mcetm.envs.pool import Pool
from mcetm.envs.simulate import Block
from mcetm.errors import UserError
from mcetm.numbers import with_spread
from mcetm.tasks.policy import BehaviourPolicy
from mcetm.tasks.registry import Task, get_task

Rows = dict[str, np.ndarray]

LONGEST = 1000
"""Where an environment without a limit of its own is cut."""
_LANES = 5
"""Episodes stepped side by side, their actions in one batch."""
MOST_EPISODES = 100_000
"""What is asked for beyond this is a slip of the keyboard."""


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


def evaluate_policy(task: Task, policy: BehaviourPolicy, *, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Run whole episodes, several side by side."""
    return evaluate_policies(task, [policy], episodes=episodes, seed=seed)[0]


def evaluate_policies(
    task: Task,
    policies: Sequence[BehaviourPolicy],
    *,
    episodes: int = 10,
    seed: int = 0,
    pool: Pool | None = None,
) -> list[Evaluation]:
    """The same starts for every policy."""
    found = []
    for rows in run_episodes(task, policies, episodes=episodes, seed=seed, pool=pool):
        starts, ends = episode_bounds(rows)
        returns = np.add.reduceat(rows["reward"].astype(np.float64), starts)
        if not np.isfinite(returns).all():
            raise UserError(f"A policy reached a return that is not finite in '{task.name}'.")
        found.append(Evaluation(tuple(returns.tolist()), tuple((ends - starts).tolist()), task))
    return found


def run_episodes(
    task: Task, policies: Sequence[BehaviourPolicy], *, episodes: int, seed: int = 0, pool: Pool | None = None
) -> list[Rows]:
    """Whole episodes of every policy; a pool shares them among processes, without changing them."""
    check_episodes(episodes)
    whole("seed", seed)
    for policy in policies:
        _check_fit(task, policy)
    starts = range(0, episodes, _LANES)
    blocks = [
        Block(
            env_id=task.env_id,
            env_kwargs=task.env_kwargs,
            obs_dim=task.obs_dim,
            action_dim=task.action_dim,
            policies=(policy,),
            lanes=min(_LANES, episodes - start),
            lane_steps=1,  # a lane always finishes its episode, so each runs exactly one
            seed=(seed, 0, start),
            time_limit=task.time_limit or LONGEST,
        )
        for policy in policies
        for start in starts
    ]
    rows = (pool or Pool(1)).run(blocks)
    by_policy = (rows[i : i + len(starts)] for i in range(0, len(rows), len(starts)))
    return [
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} for parts in by_policy
    ]


def check_episodes(episodes: int) -> None:
    """Refuse a number of episodes that cannot be meant."""
    if isinstance(episodes, bool) or not isinstance(episodes, int | np.integer):
        raise UserError(f"Episodes are counted in whole numbers, and {episodes!r:.60} is none.")
    if not 1 <= episodes <= MOST_EPISODES:
        raise UserError(f"Episodes must be at least 1 and at most {MOST_EPISODES:,}, not {episodes}.")


def episode_bounds(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """First row of each episode, and the row after its last."""
    ends = np.flatnonzero(rows["terminated"] | rows["truncated"]) + 1
    return np.concatenate([[0], ends[:-1]]), ends


def _check_fit(task: Task, policy: BehaviourPolicy) -> None:
    for what, own, wanted in (
        ("observations", getattr(policy, "obs_dim", task.obs_dim), task.obs_dim),
        ("actions", getattr(policy, "action_dim", task.action_dim), task.action_dim),
    ):
        if own != wanted:
            raise UserError(
                f"The policy has {what} of width {own}, and those of '{task.name}' have {wanted}."
            )


@dataclass(frozen=True)
class Evaluations:
    """Returns of several policies on one task, which met the same starts."""

    of_policies: tuple[Evaluation, ...]

    @property
    def means(self) -> np.ndarray:
        """Mean return of each policy."""
        return np.array([found.mean for found in self.of_policies])

    @property
    def mean(self) -> float:
        """Mean over policies of their mean returns."""
        return float(self.means.mean())

    @property
    def std(self) -> float | None:
        """Spread over policies; None for a single one."""
        return float(self.means.std(ddof=1)) if len(self.means) > 1 else None

    @property
    def score(self) -> float | None:
        """Normalised mean return, where the task has references."""
        scores = self.of_policies[0].task.scores
        return None if scores is None else float(scores.normalize(self.mean))

    def __str__(self) -> str:
        over = "" if self.std is None else f" over {len(self.means)} policies"
        score = "" if self.score is None else f", score {self.score:.1f}"
        task, episodes = self.of_policies[0].task.name, len(self.of_policies[0].returns)
        return f"{task}: return {with_spread(self.means.tolist())}{over}{score} ({episodes} episodes each)"


def evaluate(
    policies: Any, task: str | Task, *, episodes: int = 10, seed: int = 0, processes: int = 1
) -> Evaluations:
    """Run policies in their environment.

    **Arguments:**

    - `policies`: one policy or several, as an agent has them or `load_policy` reads them.
    - `task`: the name of a task, or a `Task`.
    - `episodes`: whole episodes of each policy.
    - `seed`: of the environments; all policies meet the same starts.
    - `processes`: simulators that share the episodes; returns are the same for any number of them.

    **Returns:** returns and lengths of every episode; printed, their mean, spread and normalised score.
    """
    check_episodes(episodes)
    given = list(policies) if isinstance(policies, Sequence) else [policies]
    if not given:
        raise UserError("There is no policy to evaluate.")
    if any(not hasattr(policy, "network") for policy in given):
        raise UserError("policies= should be policies, as an agent has them or mcetm.load_policy reads them.")
    networks = [policy.network for policy in given]
    require("task", task, "a Task or the name of one", str, Task)
    where = get_task(task) if isinstance(task, str) else task
    whole("processes", processes, least=1, most=MOST_PROCESSES)
    with Pool(processes) as pool:
        found = evaluate_policies(where, networks, episodes=episodes, seed=seed, pool=pool)
    return Evaluations(tuple(found))

"""Where the pendulum's reference returns come from: uniform actions, and energy shaping with a catch."""

from __future__ import annotations

import numpy as np

from mcetm.envs import SwingUp, collect
from mcetm.tasks import BehaviourPolicy, UniformPolicy, get_task
from record import record

EPISODES = 4000


def main() -> None:
    """Mean return and its standard error over many episodes of each."""
    task = get_task("pendulum")
    policies: dict[str, BehaviourPolicy] = {
        "uniform": UniformPolicy(task.action_low, task.action_high),
        "swing_up_with_catch": SwingUp(catch=True),
    }
    result = {}
    for name, policy in policies.items():
        returns = collect(task, EPISODES * 200, policy).episode_returns
        result[name] = {
            "mean_return": round(float(returns.mean()), 1),
            "standard_error": round(float(returns.std() / np.sqrt(len(returns))), 1),
        }
    record("pendulum_scores", result)


if __name__ == "__main__":
    main()

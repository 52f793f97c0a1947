"""Returns are those of whole episodes, and repeatable."""

import numpy as np
import pytest

from mcetm import UserError
from mcetm.agents.policy import numpy_policy
from mcetm.evaluation.returns import evaluate_policy
from mcetm.tasks import get_task
from mcetm.tasks.policy import UniformPolicy
from tests.agents.test_agents import small_actor


def test_evaluation_runs_whole_episodes_and_scores_them() -> None:
    task = get_task("pendulum")
    policy = UniformPolicy(task.action_low, task.action_high)
    found = evaluate_policy(task, policy, episodes=3, seed=1)
    assert found.lengths == (200, 200, 200)
    assert found == evaluate_policy(task, policy, episodes=3, seed=1)
    assert found.returns != evaluate_policy(task, policy, episodes=3, seed=2).returns
    assert task.scores is not None
    assert found.score == pytest.approx(float(task.scores.normalize(np.mean(found.returns))))
    with pytest.raises(UserError, match="width 1"):
        evaluate_policy(get_task("hopper"), numpy_policy(small_actor()), episodes=1)
    assert found.score_std == pytest.approx(100 * np.std(found.returns, ddof=1) / (1227 - 152))

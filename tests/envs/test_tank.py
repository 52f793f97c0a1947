"""The two tanks: what flows is conserved, and the task's rule ends episodes where the simulator does."""

from __future__ import annotations

import numpy as np
import pytest

from mcetm import collect
from mcetm.envs.tank import TIME_LIMIT, TwoTanks
from mcetm.tasks.registry import get_task


def test_what_leaves_one_tank_comes_to_the_other() -> None:
    env = TwoTanks()
    before, _ = env.reset(seed=0)
    after, reward, *_ = env.step(np.array([0.0, 1.0]))
    assert after[0] < before[0]
    lost = before[:2].sum() - after[:2].sum()
    assert 0.0 < lost < 0.05, "only the outlet and the demand take from both"
    assert reward == pytest.approx(-abs(after[1] - before[2]), abs=1e-6)
    emptied = [env.step(np.array([0.0, 1.0]))[0] for _ in range(100)]
    assert (emptied[-1][:2] >= 0.0).all()


def test_a_tank_that_overflows_ends_the_episode_at_a_cost() -> None:
    env = TwoTanks()
    env.reset(seed=0)
    steps = (env.step(np.array([1.0, 0.0])) for _ in range(TIME_LIMIT))
    obs, reward, *_ = next(step for step in steps if step[2])
    assert obs[0] > 1.0
    assert reward < -20.0


def test_the_tasks_rule_is_the_simulators() -> None:
    task = get_task("tank")
    log = collect(task, 4000, ["tank-operator", "uniform"], mix=True, seed=3, processes=1)
    assert task.termination is not None
    np.testing.assert_array_equal(task.termination(log.next_obs), log.terminated)
    assert log.terminated.any()
    assert log.episode_lengths.max() == task.time_limit == TIME_LIMIT

"""What tries are worth, against values known by enumeration."""

from itertools import combinations

import numpy as np
import pytest

from mcetm.evaluation.online import bandit_curve, expected_best


def test_the_best_of_k_is_the_mean_over_all_choices_of_k() -> None:
    means = np.array([3.0, -1.0, 7.0, 7.0, 2.0])
    found = expected_best(means)
    for k in range(1, 6):
        every = [max(chosen) for chosen in combinations(means, k)]
        assert found[k - 1] == pytest.approx(np.mean(every))


def test_a_bandit_begins_at_the_mean_and_ends_at_the_best() -> None:
    rng = np.random.default_rng(0)
    episodes = [rng.normal(level, 1.0, 50) for level in (0.0, 1.0, 5.0)]
    worth = [returns.mean() for returns in episodes]
    curve = bandit_curve(episodes, 300, repeats=500)
    assert curve[0] == pytest.approx(np.mean(worth), abs=0.3)  # the first try is of any policy
    assert curve[-1] == pytest.approx(max(worth), abs=0.02)
    assert curve[2] > curve[0]


def test_policies_that_are_all_alike_are_worth_what_each_is() -> None:
    assert bandit_curve([np.full(4, 2.5)] * 3, 20, repeats=10) == pytest.approx(np.full(20, 2.5))


def test_a_policy_without_episodes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        bandit_curve([np.ones(3), np.zeros(0)], 5)

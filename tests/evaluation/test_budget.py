"""The next real episode goes where it can change the choice."""

import numpy as np
import pytest

from mcetm.evaluation.budget import Beliefs


def beliefs(mean: list[float], spread: list[float], noise: float = 1.0) -> Beliefs:
    return Beliefs(np.array(mean), np.array(spread) ** 2, noise)


def test_a_return_moves_a_belief_as_bayes_says() -> None:
    found = beliefs([0.0, 5.0], [1.0, 1.0]).after([(0, 4.0)])
    assert found.mean.tolist() == pytest.approx([2.0, 5.0])
    assert found.variance.tolist() == pytest.approx([0.5, 1.0])


def test_the_gain_is_that_of_a_simulation() -> None:
    here = beliefs([1.0, 0.5, -2.0], [1.0, 2.0, 0.1])
    rng = np.random.default_rng(0)
    for policy in range(3):
        true = rng.normal(here.mean[policy], np.sqrt(here.variance[policy]), 20_000)
        seen = true + rng.normal(size=20_000)
        weight = here.variance[policy] / (here.variance[policy] + 1.0)
        updated = here.mean[policy] + weight * (seen - here.mean[policy])
        others = np.delete(here.mean, policy).max()
        assert here.gain[policy] == pytest.approx(np.maximum(updated, others).mean() - 1.0, abs=0.02)


def test_the_uncertain_one_is_tried_before_the_one_that_is_known() -> None:
    assert beliefs([0.0, 0.0], [0.1, 2.0]).following == 1
    assert beliefs([0.0, -9.0], [1.0, 1.0]).following == 0
    assert beliefs([3.0], [1.0]).plan(2) == [0, 0]


def test_enough_episodes_find_the_best_whatever_was_expected() -> None:
    truth, rng = np.array([0.0, 1.0, 3.0]), np.random.default_rng(0)
    here = beliefs([2.0, 1.0, 0.0], [2.0, 2.0, 2.0])
    for _ in range(60):
        policy = here.following
        here = here.after([(policy, truth[policy] + rng.normal())])
    assert here.best == 2

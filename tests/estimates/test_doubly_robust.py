"""The doubly robust estimate is right if either of its parts is, and knows what its weights are worth."""

import numpy as np
import pytest

from mcetm.estimates import Asked, BehaviourSettings, Quantity, fit_behaviour
from mcetm.estimates.behaviour import log_densities, spreads
from mcetm.estimates.doubly_robust import Weights, corrected, folds_of, weights_of
from tests.estimates.problems import HORIZON, acting, line_log


def test_equal_weights_and_no_critic_give_the_mean_return() -> None:
    log = line_log(20)
    weights, nothing = Weights(np.zeros((20, HORIZON))), np.zeros(len(log))
    assert weights.effective.tolist() == pytest.approx([20.0] * HORIZON)
    # Weights that are all alike are worth nothing where they are all next to nothing.
    assert Weights(np.full((20, HORIZON), -30.0)).effective.max() < 1e-9
    found = corrected(weights, log, Quantity(HORIZON), np.zeros(20), nothing, nothing, resamples=200)
    assert found[0] == pytest.approx(log.episode_returns.mean())
    assert found[1] == pytest.approx(log.episode_returns.std() / np.sqrt(20), rel=0.3)


def test_a_wrong_critic_does_no_harm_where_weights_are_right() -> None:
    log = line_log(20)
    rng = np.random.default_rng(0)
    starts = rng.normal(size=20)
    # Values that are made up, but the same wherever one state is asked about twice.
    value = np.repeat(starts, HORIZON).reshape(20, HORIZON)
    now = value.ravel()
    following = np.where(log.truncated, 0.0, value.ravel())
    found, _ = corrected(
        Weights(np.zeros((20, HORIZON))), log, Quantity(HORIZON), starts, now, following, resamples=2
    )
    assert found == pytest.approx(log.episode_returns.mean())


def test_a_right_critic_needs_no_weights() -> None:
    log = line_log(20)
    to_go = np.cumsum(log.reward.reshape(20, HORIZON)[:, ::-1], axis=1)[:, ::-1]
    following = np.concatenate([to_go[:, 1:], np.zeros((20, 1))], axis=1)
    wild = Weights(np.random.default_rng(0).normal(size=(20, HORIZON)) * 5)
    found, _ = corrected(
        wild, log, Quantity(HORIZON), to_go[:, 0], to_go.ravel(), following.ravel(), resamples=2
    )
    assert found == pytest.approx(log.episode_returns.mean(), rel=1e-5)


def test_few_episodes_have_all_the_weight_of_a_policy_that_is_unlike_the_log() -> None:
    log = line_log(40, width=0.3)
    fold = folds_of(log, 2)
    masks = np.stack([fold != 0, fold != 1]).astype(float)
    behaviour = fit_behaviour(log, BehaviourSettings(width=8, depth=1, steps=200, learning_rate=1e-2), masks)
    known = log_densities(behaviour, log.obs, log.action)
    uniform = -np.log(0.6)
    assert known.mean() == pytest.approx(uniform, abs=0.35)  # a Gaussian is not far from it
    assert spreads(behaviour, log.obs) == pytest.approx(0.3 / np.sqrt(3), rel=0.4)
    of = lambda policy: weights_of(policy, log, behaviour, fold, Quantity(HORIZON), 0.5)  # noqa: E731
    alike, _ = of(Asked("alike", acting(0.0, spread=0.17)))
    unlike, kernel = of(Asked("unlike", acting(0.0, 2.0)))
    assert alike.effective.min() > 10
    assert unlike.effective.min() < 3
    assert kernel == pytest.approx(0.5 * np.median(spreads(behaviour, log.obs), axis=0))
    # The weight of an episode that has ended stays.
    short, _ = weights_of(
        Asked("alike", acting(0.0, spread=0.17)),
        log.head(len(log) - 2),
        behaviour,
        fold,
        Quantity(HORIZON),
        0.5,
    )
    last = short.log_ratio[-1]
    assert last[1] == last[2] == last[3] != last[0]

"""Fitted Q evaluation finds values that are known."""

from dataclasses import replace

import numpy as np
import pytest

from mcetm.data import Transitions
from mcetm.estimates import Asked, FQESettings, Quantity
from mcetm.estimates.asked import next_actions
from mcetm.estimates.fitted_q import bellman_residual, bootstrap_weights, fit_critics
from tests.estimates.problems import HORIZON, acting, line_log, true_return

SMALL = FQESettings(width=16, depth=1, batch_size=64, steps=600, learning_rate=1e-2, polyak=0.1)


def test_the_return_of_a_policy_on_a_line_and_that_of_the_log_itself() -> None:
    log = line_log(200)
    policy = Asked("steer", acting(-1.5))
    quantity = Quantity.of(log, None)
    assert quantity.horizon == HORIZON
    following, usable = next_actions([policy], log, 1, seed=0)
    members = np.array([0, 0, 1, 1])
    weights = np.ones((4, log.num_episodes))
    fitted = fit_critics(log, following, usable, quantity, SMALL, policy=members, weights=weights, tied=[1])
    starts = log.obs[log.episode_starts]
    actions = np.stack([policy.actions(starts, 1, seed=0), log.action[log.episode_starts][:, None]])
    found = fitted.values(starts, actions, members, HORIZON)
    truth = true_return(policy.network, starts)
    own = log.episode_returns
    assert abs(truth.mean() - own.mean()) > 0.5
    assert found[:2].mean() == pytest.approx(truth.mean(), abs=0.12)
    assert found[2:].mean() == pytest.approx(own.mean(), abs=0.12)
    assert np.corrcoef(found[:2].mean(axis=0), truth)[0, 1] > 0.95
    # The process has no noise, so that little remains of what a critic has to explain.
    size, summed = bellman_residual(fitted, log, following, usable, members, [1])
    assert size[:2].max() < 0.3
    assert abs(summed).max() < 0.15


@pytest.mark.parametrize(("ends", "worth"), [(True, 1.0), (False, 4.0)])
def test_nothing_follows_an_end_and_something_follows_a_cut(ends: bool, worth: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, (100, 2)).astype(np.float32)
    log = Transitions.from_arrays(
        obs=rows[:, :1],
        action=rows[:, 1:],
        reward=np.ones(100) + 1e-3 * rows[:, 0],
        # What came after an end need not be known.
        next_obs=np.where(ends & (np.arange(100) % 2 == 0)[:, None], np.float32(np.nan), rows[:, :1]),
        terminated=np.full(100, ends),
        truncated=np.full(100, not ends),
    )
    policy, quantity = Asked("any", acting(0.0)), Quantity(4)
    following, usable = next_actions([policy], log, 1, seed=0)
    fitted = fit_critics(
        log, following, usable, quantity, SMALL, policy=np.array([0]), weights=np.ones((1, 100))
    )
    found = fitted.values(log.obs[:10], policy.actions(log.obs[:10], 1, seed=0)[None], np.array([0]), 4)
    np.testing.assert_allclose(found, worth, atol=0.1)
    size, _ = bellman_residual(fitted, log, following, usable, np.array([0]))
    assert np.isfinite(size).all()


def test_a_discount_and_a_horizon_give_the_same_scale_as_the_log() -> None:
    log = line_log(3)
    half = Quantity(HORIZON, 0.5)
    own = half.of_episodes(log)
    first = log.reward[:HORIZON] @ np.array([1.0, 0.5, 0.25, 0.125])
    assert own[0] == pytest.approx(first, rel=1e-5)
    assert half.lengths.tolist() == [0.0, 1.0, 1.5, 1.75, 1.875]
    np.testing.assert_allclose(Quantity(HORIZON).of_episodes(log), log.episode_returns, rtol=1e-6)
    assert Quantity(HORIZON).whole(log).all()
    assert not Quantity(HORIZON + 1).whole(log).any()


def test_the_log_has_no_next_action_after_a_cut() -> None:
    log = line_log(3)
    following, usable = next_actions([Asked("steer", acting(-1.0))], log, 4, seed=0)
    assert following.shape == (2, len(log), 1, 1)  # a policy with one action needs no more of them
    assert (~usable[-1]).nonzero()[0].tolist() == [3, 7, 11]
    assert usable[0].all()
    np.testing.assert_array_equal(following[-1, :3, 0], log.action[1:4])


def test_weights_of_episodes_are_one_on_average() -> None:
    weights = bootstrap_weights(40, 3, seed=0)
    np.testing.assert_allclose(weights.mean(axis=1), 1.0)
    assert weights.min() > 0.0
    assert weights.std() > 0.5


def test_a_large_reward_that_ends_the_task_is_not_spread_over_other_steps() -> None:
    """Episodes of 20 steps earn −0.1 a step; those that begin beyond 0.8 end at once, with −20."""
    horizon, episodes = 20, 100
    first = np.linspace(-1.0, 1.0, episodes, dtype=np.float32)
    ending = first > 0.8
    lengths = np.where(ending, 1, horizon)
    obs = np.repeat(first, lengths)[:, None]
    last = np.zeros(len(obs), bool)
    last[np.cumsum(lengths) - 1] = True
    terminated = np.repeat(ending, lengths)
    log = Transitions.from_arrays(
        obs=obs,
        action=np.random.default_rng(0).uniform(-1.0, 1.0, (len(obs), 1)).astype(np.float32),
        reward=np.where(terminated, -20.0, -0.1),
        next_obs=obs,
        terminated=terminated,
        truncated=last & ~terminated,
    )
    policy, quantity = Asked("any", acting(0.0)), Quantity(horizon)
    following, usable = next_actions([policy], log, 1, seed=0)
    config = replace(SMALL, width=32, steps=2000)
    fitted = fit_critics(
        log, following, usable, quantity, config, policy=np.array([0]), weights=np.ones((1, episodes))
    )
    starts = first[:, None]
    found = fitted.values(starts, policy.actions(starts, 1, seed=0)[None], np.array([0]), horizon)[0]
    assert found[ending].mean() == pytest.approx(-20.0, abs=3.0)
    assert abs(found[first < 0.2] + 2.0).mean() < 0.5
    assert found.min() > -28.0, "an end is earned once"

"""The model-based estimate, in a world that is known."""

import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.dynamics import World
from mcetm.estimates import Asked, ModelBasedSettings, Quantity
from mcetm.estimates.model_based import Rollouts, bounded, missed, roll_out, spread_of
from mcetm.estimates.rewards import RewardRange
from tests.estimates.problems import HORIZON, Line, acting, line_log, reward, true_return

LOG = line_log(20)
POLICY = Asked("steer", acting(-1.5))


def world(*off: float) -> World:
    return World(Line(jnp.array(off, jnp.float32)), reward)


def rolled(where: World) -> Rollouts:
    (found,) = roll_out(where, [POLICY], LOG, Quantity(HORIZON), ModelBasedSettings(), RewardRange.of(LOG))
    return found


def test_policies_side_by_side_have_the_episodes_that_each_has_alone() -> None:
    noisy = Asked("noisy", acting(0.5, spread=0.5))
    given = (LOG, Quantity(HORIZON), ModelBasedSettings(), RewardRange.of(LOG))
    together = roll_out(world(0.0, 0.1), [POLICY, noisy], *given)
    for policy, found in zip((POLICY, noisy), together, strict=True):
        (alone,) = roll_out(world(0.0, 0.1), [policy], *given)
        np.testing.assert_allclose(found.returns, alone.returns, rtol=1e-5)
    assert not np.allclose(together[0].returns, together[1].returns)


def test_a_true_model_gives_the_true_return() -> None:
    found = rolled(world(0.0, 0.0))
    truth = true_return(POLICY.network, LOG.obs[LOG.episode_starts[found.starts]])
    np.testing.assert_allclose(
        found.returns, np.stack([truth, truth]), atol=5e-3
    )  # 0 is no reward of the log
    assert (found.lengths == HORIZON).all()
    assert spread_of(found)[0] == pytest.approx(0.0, abs=1e-6)
    assert spread_of(found)[1] == pytest.approx(truth.std(ddof=1) / np.sqrt(20), rel=1e-2)


def test_members_that_differ_widen_the_estimate_and_carry_their_error_all_the_way() -> None:
    found = rolled(world(-0.2, 0.2))
    assert spread_of(found)[0] > 0.0 or spread_of(found)[1] > 0.0
    truth = true_return(POLICY.network, LOG.obs[LOG.episode_starts[found.starts]])
    assert found.returns.mean() < truth.mean()


def test_what_a_model_misses_is_seen_on_the_log_and_told_as_a_return() -> None:
    quantity, bounds = Quantity(HORIZON), RewardRange.of(LOG)
    exact = missed(world(0.0), LOG, quantity, ModelBasedSettings(), bounds)
    wrong = missed(world(0.3), LOG, quantity, ModelBasedSettings(), bounds)
    assert exact is not None
    assert wrong is not None
    assert exact == (pytest.approx(0.0, abs=1e-3), HORIZON)
    assert abs(wrong[0]) > 0.3


def test_an_end_of_the_task_ends_an_imagined_episode() -> None:
    ending = World(Line(jnp.zeros(1)), reward, lambda obs, action, following: jnp.ones((), bool))
    found = rolled(ending)
    assert (found.lengths == 1).all()


def test_what_is_beyond_any_number_is_outside_and_bounded() -> None:
    broken = World(Line(jnp.array([jnp.inf])), reward)
    bounds = RewardRange.of(LOG)
    found = rolled(broken)
    assert (found.outside == 1.0).all()
    assert (found.leaves == 0).all()
    assert np.isfinite(found.returns).all()
    low, high = bounded(found, bounds)
    assert (low, high) == pytest.approx(bounds.worth(HORIZON))

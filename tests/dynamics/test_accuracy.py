"""How well a model predicts held-out episodes: models whose errors are known."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.dynamics.accuracy import accuracy_of
from tests.estimates.problems import HORIZON, Line, line_log

LOG = line_log(60)


def test_the_truth_has_no_error() -> None:
    found = accuracy_of(Line(jnp.zeros(2)), LOG)
    assert found is not None
    assert found.columns == ("obs_0",)
    assert found.rows == len(LOG)
    assert found.one_step[0] == pytest.approx(0.0, abs=1e-6)
    assert found.open_loop is not None
    assert found.open_loop.median == pytest.approx((0.0,) * HORIZON, abs=1e-6)
    assert found.open_loop.stretches == 60
    assert np.all(np.array(found.open_loop.still) > 0.0)


def test_an_error_of_every_step_adds_up_open_loop_and_not_one_step_on() -> None:
    found = accuracy_of(Line(jnp.full(1, 0.1)), LOG)
    assert found is not None
    assert found.open_loop is not None
    change = np.sqrt(np.mean((LOG.next_obs - LOG.obs) ** 2))
    assert found.one_step[0] == pytest.approx(0.1 / change, rel=1e-4)
    steps = 0.1 * np.arange(1, HORIZON + 1) / LOG.obs.std()
    np.testing.assert_allclose(found.open_loop.median, steps, rtol=1e-4)
    np.testing.assert_allclose(found.open_loop.low, found.open_loop.high, rtol=1e-4)


def test_rows_that_do_not_say_what_came_after_are_left_out() -> None:
    following = LOG.next_obs.copy()
    ends = LOG.episode_ends - 1
    following[ends] = np.nan
    terminated = np.zeros(len(LOG), bool)
    terminated[ends] = True
    none = np.zeros(len(LOG), bool)
    cut = replace(LOG, next_obs=following, terminated=terminated, truncated=none)
    found = accuracy_of(Line(jnp.zeros(1)), cut)
    assert found is not None
    assert found.rows == len(LOG) - 60
    assert found.open_loop is not None
    assert len(found.open_loop.median) == HORIZON - 1
    ending = replace(LOG, next_obs=np.full_like(following, np.nan), terminated=~none, truncated=none)
    assert accuracy_of(Line(jnp.zeros(1)), ending) is None


def test_what_leaves_all_numbers_is_far_off_and_no_crash() -> None:
    found = accuracy_of(Line(jnp.full(1, jnp.inf)), LOG)
    assert found is not None
    assert found.open_loop is not None
    assert np.isfinite(found.open_loop.median).all()
    assert min(found.open_loop.median) > 1e30

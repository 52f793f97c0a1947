from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Transitions, UserError
from mcetm.dynamics.reward import HeadSettings, fit_reward, fit_termination
from mcetm.training.batches import Batch

CONFIG = HeadSettings(width=32, learning_rate=3e-3, steps=3000, batch_size=128)


def log(rows: int = 3000) -> Transitions:
    """Reward 100 + 10·(s' − s)·a; the task ends where s' > 1."""
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(rows, 1)), rng.uniform(-1, 1, (rows, 1))
    following = obs + 0.5 * rng.normal(size=(rows, 1))
    reward = 100 + 10 * ((following - obs) * action)[:, 0]
    ended = following[:, 0] > 1.0
    return Transitions.from_arrays(obs, action, reward, following, ended, ~ended)


def test_rewards_are_learned_in_their_own_units() -> None:
    train, holdout = log().split(0.2)
    head, history = fit_reward(train, holdout, CONFIG, key=jax.random.key(0))
    held = Batch.of(holdout)
    predicted = jax.vmap(head)(held.obs, held.action, held.next_obs)
    error = float(jnp.abs(predicted - held.reward).mean())
    assert error < 0.15 * float(held.reward.std())
    assert history[-1]["score"] < 0.1


def test_terminations_are_learned() -> None:
    train, holdout = log().split(0.2)
    ends, _ = fit_termination(train, holdout, CONFIG, key=jax.random.key(0))
    held = Batch.of(holdout)
    found: Any = jax.vmap(ends)(held.obs, held.action, held.next_obs)
    assert float((found == held.terminated).mean()) > 0.97


def test_ends_whose_next_state_is_unknown_are_learned_with_their_rewards() -> None:
    """The reward is -20 where the task ends, which here s alone decides."""
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(3000, 1)), rng.uniform(-1, 1, (3000, 1))
    ended = obs[:, 0] > 1.0
    following = np.where(ended[:, None], np.nan, obs)
    full = Transitions.from_arrays(obs, action, np.where(ended, -20.0, 1.0), following, ended, ~ended)
    assert not full.next_known.all()
    train, holdout = full.split(0.2)
    reward, _ = fit_reward(train, holdout, CONFIG, key=jax.random.key(0))
    ends, _ = fit_termination(train, holdout, CONFIG, key=jax.random.key(0))
    nothing = jnp.full(1, jnp.nan)
    for state, expected in ((-1.0, 1.0), (2.0, -20.0)):
        s, a = jnp.array([state]), jnp.zeros(1)
        assert float(reward(s, a, nothing)) == pytest.approx(expected, abs=0.5)
        assert bool(ends(s, a, nothing)) == (expected < 0.0)


def test_a_log_without_rewards_has_no_reward_model() -> None:
    bare = Transitions.from_arrays(log().obs, next_obs=log().next_obs, truncated=log().truncated)
    with pytest.raises(UserError, match="has no rewards"):
        fit_reward(bare, bare, CONFIG, key=jax.random.key(0))


def test_a_fit_of_other_data_is_refused(tmp_path: Path) -> None:
    """A folder holds a model of one log; another log in it is a mix-up."""
    train, holdout = log(200).split(0.2)
    config = HeadSettings(width=8, depth=1, steps=10, batch_size=16)
    fit_reward(train, holdout, config, key=jax.random.key(0), folder=tmp_path)
    fit_reward(train, holdout, config, key=jax.random.key(0), folder=tmp_path)
    with pytest.raises(UserError, match="another configuration: 'data'"):
        fit_reward(holdout, holdout, config, key=jax.random.key(0), folder=tmp_path)

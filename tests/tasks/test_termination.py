import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.envs.simulate import make_env
from mcetm.tasks import HealthyBox, get_task


@pytest.mark.parametrize("name", ["hopper", "walker2d", "halfcheetah"])
def test_the_rule_agrees_with_the_simulator_at_every_step(name: str) -> None:
    task = get_task(name)
    assert task.termination is not None
    env = make_env(task.env_id, task.env_kwargs)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    ended = 0
    for _ in range(1500):
        obs, _, terminated, truncated, _ = env.step(rng.uniform(-1, 1, task.action_dim))
        assert bool(task.termination(obs)) == terminated
        if terminated or truncated:
            ended += 1
            env.reset()
    env.close()
    assert ended > (0 if name == "halfcheetah" else 20)


def test_registrations_agree_with_gymnasium() -> None:
    for name in ("pendulum", "hopper", "walker2d", "halfcheetah"):
        task = get_task(name)
        env = make_env(task.env_id, task.env_kwargs)
        assert isinstance(env.action_space, gymnasium.spaces.Box)
        np.testing.assert_allclose(env.action_space.low, task.action_low)
        np.testing.assert_allclose(env.action_space.high, task.action_high)
        assert env.observation_space.shape == (task.obs_dim,)
        assert env.spec.max_episode_steps == task.time_limit
        env.close()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 100.0, -100.0])
def test_what_is_not_healthy_terminates(value: float) -> None:
    rule = HealthyBox({0: (0.7, float("inf"))}, default=(-100.0, 100.0))
    healthy = np.array([1.2, 0.0, 0.0])
    assert not rule(healthy)
    assert rule(np.array([1.2, 0.0, value]))
    assert rule(np.array([0.7, 0.0, 0.0])), "bounds themselves are unhealthy"
    if not np.isfinite(value):
        assert rule(np.array([value, 0.0, 0.0]))


def test_leading_axes_and_device_arrays() -> None:
    rule = HealthyBox({1: (-0.2, 0.2)})
    obs = np.random.default_rng(0).normal(0, 0.2, (4, 5, 3)).astype(np.float32)
    expected = np.abs(obs[..., 1]) >= 0.2
    np.testing.assert_array_equal(rule(obs), expected)
    np.testing.assert_array_equal(rule(jnp.asarray(obs)), expected)

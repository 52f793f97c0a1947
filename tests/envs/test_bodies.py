"""Bodies from observations: against the simulator's own."""

import numpy as np
import pytest

from mcetm import UserError
from mcetm.envs.bodies import Body
from mcetm.envs.rendering import render
from mcetm.envs.simulate import make_env
from mcetm.tasks.registry import get_task


def simulated(name: str, steps: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Observations and true qpos under gentle random actions."""
    task = get_task(name)
    env = make_env(task.env_id, {})
    obs, _ = env.reset(seed=0)
    rng, seen, poses = np.random.default_rng(0), [], []
    for _ in range(steps):
        seen.append(obs.astype(np.float32))
        poses.append(env.unwrapped.data.qpos.copy())
        obs = env.step(rng.uniform(-0.3, 0.3, task.action_dim))[0]
    return np.array(seen), np.array(poses)


@pytest.mark.parametrize("name", ["hopper", "walker2d", "halfcheetah"])
def test_observations_give_back_the_pose_and_the_way_along_the_track(name: str) -> None:
    obs, poses = simulated(name)
    found = Body(get_task(name)).positions(obs)
    np.testing.assert_allclose(found[:, 1:], poses[:, 1:], atol=1e-6)
    way = poses[:, 0] - poses[0, 0]
    assert np.abs(way).max() > 0.02
    np.testing.assert_allclose(found[:, 0], way, atol=0.15 * np.abs(way).max())


def test_capsules_lie_where_the_simulator_has_them() -> None:
    _, poses = simulated("hopper", 3)
    body = Body(get_task("hopper"))
    ends = body.capsules(poses)
    assert ends.shape == (3, 4, 2, 2)
    assert body.radii.tolist() == pytest.approx([0.05, 0.05, 0.04, 0.06])
    # The torso is 0.4 long and its lower end is where the thigh begins.
    np.testing.assert_allclose(np.linalg.norm(ends[:, 0, 0] - ends[:, 0, 1], axis=-1), 0.4, atol=1e-6)
    gaps = np.linalg.norm(ends[0, 0][:, None] - ends[0, 1], axis=-1)
    assert gaps.min() < 1e-6


def test_a_pendulum_has_no_such_body() -> None:
    with pytest.raises(UserError, match="'pendulum' is not a planar MuJoCo task"):
        Body(get_task("pendulum"))


def test_without_a_gl_library_there_are_no_rendered_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setenv("PYOPENGL_PLATFORM", "nothing")
    _, poses = simulated("hopper", 2)
    assert render(get_task("hopper"), poses, size=32) is None


def test_rendered_pictures_where_there_is_a_gl_library() -> None:
    _, poses = simulated("hopper", 2)
    frames = render(get_task("hopper"), poses, size=32)
    if frames is None:
        pytest.skip("no GL library that works without a screen")
    assert frames.shape == (2, 32, 32, 3)
    assert frames.std() > 5
    assert frames.dtype == np.uint8

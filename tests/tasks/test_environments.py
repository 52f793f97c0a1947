"""Environments by name: Gymnasium's ids, modules with ids, classes; and what is refused, in a sentence."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import mcetm
from mcetm import Transitions, UserError, get_task
from mcetm.cli import main
from mcetm.envs import make_env
from mcetm.tasks import registry

PLANT = """
import gymnasium
import numpy as np

class Plant(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, leak=0.1, breaks=False):
        self.leak, self.breaks = leak, breaks

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.steps = np.zeros(2, np.float32), 0
        return self.state, {}

    def step(self, action):
        if self.breaks:
            raise ZeroDivisionError("the pump is dry")
        self.steps += 1
        self.state = np.clip(self.state + 0.1 * action[0] - self.leak * self.state, -1, 1).astype(np.float32)
        return self.state, -abs(float(self.state[0]) - 0.5), False, self.steps >= 20, {}

class Odd:
    pass

gymnasium.registry.pop("Plant-v0", None)  # a test imports this again
gymnasium.register("Plant-v0", entry_point=Plant, max_episode_steps=7)
"""


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with `plant.py`, which is the current one."""
    monkeypatch.setattr(registry, "_MADE", {})
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "plant.py").write_text(PLANT)
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("plant", None)
    gymnasium.registry.pop("Plant-v0", None)


def test_an_id_of_gymnasiums_is_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MADE", {})
    assert get_task("Pendulum-v1") is get_task("pendulum"), "with its references"
    task = get_task("MountainCarContinuous-v0")
    assert (task.obs_dim, task.action_low, task.time_limit) == (2, (-1.0,), 999)
    assert get_task(task.name) is task


def test_a_class_of_ones_own_is_a_task(plant: Path) -> None:
    task = get_task("plant:Plant")
    assert (task.name, task.obs_dim, task.action_dim, task.time_limit) == ("plant:Plant", 2, 1, None)
    assert get_task("plant:Plant-v0").time_limit == 7
    log = mcetm.collect("plant:Plant", 40, processes=2)
    assert list(log.episode_lengths) == [20, 20]


def test_an_environment_has_options(plant: Path) -> None:
    task = get_task('plant:Plant{"leak": 0.5}')
    assert make_env(task.env_id, task.env_kwargs).unwrapped.leak == 0.5
    for options in ('{"leak": "/etc/passwd"}', '{"leak": "os:system"}', "{", '{"leak": NaN}x', "{}{}"):
        with pytest.raises(UserError, match="has options that cannot be used"):
            get_task(f"plant:Plant{options}")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CartPole-v1", r"has actions of the space Discrete\(2\); only continuous ones are supported"),
        ("Blackjack-v1", r"has observations \('0'\) of the space Discrete.*; only continuous ones"),
        ("Pendulun-v1", "did you mean 'Pendulum-v1'"),
        ("Quokka-v0", r"Gymnasium has no such id; .* PACKAGE:Quokka-v0"),
        ("plant:Plnt", "did you mean 'plant:Plant'"),
        ("plant:nonsense", "the module 'plant' has Plant"),
        ("plant:Odd", "makes no Gymnasium environment, but a Odd"),
        ('plant:Plant{"dry": 1}', "cannot be made: .*unexpected keyword argument 'dry'"),
    ],
)
def test_what_is_no_environment_is_one_sentence(plant: Path, name: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        get_task(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_environment_that_fails_says_where(plant: Path, processes: int) -> None:
    words = r"failed in step: ZeroDivisionError: the pump is dry \(plant\.py, line 19\)"
    with pytest.raises(UserError, match=words):
        mcetm.collect('plant:Plant{"breaks": true}', 40, processes=processes)


@pytest.fixture
def no_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the extra."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "mujoco" else find(name, *more)
    )


@pytest.mark.usefixtures("no_mujoco")
def test_a_simulator_that_is_not_installed_is_said_before_anything_is_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"obs": np.random.default_rng(0).normal(size=(60, 11)), "reward": np.zeros(60)}
    ends = np.arange(60) % 20 == 19
    log = Transitions.from_arrays(**rows, next_obs=rows["obs"], action=np.zeros((60, 3)), truncated=ends)
    log.save(tmp_path / "log.npz")
    command = ["train", str(tmp_path / "log.npz"), "--task", "hopper", "--algo", "bc"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 2
    said = (
        'mcetm: The environment Hopper-v4 needs MuJoCo, which is not installed: pip install "mcetm[mujoco]".'
    )
    assert said in capsys.readouterr().err.splitlines()
    assert not (tmp_path / "run").exists()
    with make_env("Pendulum-v1", {}) as env:  # others go on
        env.reset(seed=0)


def test_a_log_keeps_the_name_of_an_environment_and_runs_no_code(plant: Path) -> None:
    log = mcetm.collect("plant:Plant", 40, processes=1)
    log.save("own.npz")
    mcetm.collect("MountainCarContinuous-v0", 40, processes=1).save("known.npz")
    assert mcetm.load_dataset("known.npz").metadata.task == "MountainCarContinuous-v0"
    del sys.modules["plant"]
    read = mcetm.load_dataset("own.npz")
    assert read.metadata.task is None
    assert "--task plant:Plant imports it" in read.metadata.notes[-1]
    assert "plant" not in sys.modules
    named = mcetm.load_dataset("own.npz", task="plant:Plant")
    assert named.metadata.notes == (), "it is said already"
    np.testing.assert_array_equal(named.reward, log.reward)

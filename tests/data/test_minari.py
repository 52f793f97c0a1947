"""Real Minari datasets, made with Minari's own API; the environments' packages are never imported."""

import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer

from mcetm import UserError, get_task, load_dataset
from mcetm.data import make_card, read_minari

OBS = spaces.Box(-10.0, 10.0, (3,), np.float64)
ACTION = spaces.Box(-1.0, 1.0, (2,), np.float32)


def buffer(length: int, *, terminates: bool, seed: int, obs: Any = None, action: Any = None) -> Any:
    rng = np.random.default_rng(seed)
    flags = [False] * (length - 1)
    obs = rng.normal(size=(length + 1, 3)) if obs is None else obs
    action = rng.uniform(-1, 1, (length, 2)).astype(np.float32) if action is None else action
    return EpisodeBuffer(
        observations=obs,
        actions=action,
        rewards=rng.normal(size=length).tolist(),
        terminations=[*flags, terminates],
        truncations=[*flags, not terminates],
        infos={},
    )


def create(name: str, buffers: list[EpisodeBuffer], **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari asks for an author and a code link
        return minari.create_dataset_from_buffers(
            name, buffers, **({"observation_space": OBS, "action_space": ACTION} | options)
        )


def test_episodes_of_several_lengths(tmp_path: Path) -> None:
    lengths = (12, 1, 30, 5)
    buffers = [buffer(n, terminates=i % 2 == 0, seed=i) for i, n in enumerate(lengths)]
    create("made/several-v0", buffers)
    log = read_minari("made/several-v0")
    assert log.episode_lengths.tolist() == list(lengths)
    ends = log.episode_ends - 1
    assert log.terminated[ends].tolist() == [True, False, True, False]
    assert log.truncated[ends].tolist() == [False, True, False, True]
    first: Any = buffers[0].observations
    np.testing.assert_allclose(log.obs[:12], first[:-1], rtol=1e-6)
    np.testing.assert_allclose(log.next_obs[:12], first[1:], rtol=1e-6)
    np.testing.assert_allclose(log.reward[13:43], buffers[2].rewards, rtol=1e-6)
    assert (log.metadata.action_low, log.metadata.action_high) == ((-1.0, -1.0), (1.0, 1.0))
    assert make_card(log).continuity.broken == 0


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dataset_from_a_simulator_knows_its_task() -> None:
    env = minari.DataCollector(gymnasium.make("Pendulum-v1"))
    for seed in range(2):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        done = False
        while not done:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            done = terminated or truncated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env.create_dataset("made/pendulum-v0")
    env.close()
    log = load_dataset("made/pendulum-v0")
    assert log.metadata.task == "pendulum"
    assert log.episode_lengths.tolist() == [200, 200]
    assert not log.terminated.any()


def test_the_environment_need_not_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "robot_of_tomorrow.py").write_text(
        "from gymnasium import Env, spaces\n"
        "class Robot(Env):\n"
        "    observation_space = spaces.Box(-10.0, 10.0, (3,), float)\n"
        "    action_space = spaces.Box(-1.0, 1.0, (2,))\n"
    )
    with monkeypatch.context() as here:
        here.syspath_prepend(tmp_path)
        gymnasium.register("Robot-v7", entry_point="robot_of_tomorrow:Robot")
        create("made/robot-v0", [buffer(20, terminates=True, seed=0)], env="Robot-v7")
        del gymnasium.registry["Robot-v7"], sys.modules["robot_of_tomorrow"]
    (tmp_path / "robot_of_tomorrow.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        minari.load_dataset("made/robot-v0").recover_environment()
    log = load_dataset("made/robot-v0")
    assert len(log) == 20
    assert log.metadata.provenance["environment"] == "Robot-v7"
    assert log.metadata.task is None


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_environment_with_other_observations_is_not_our_task() -> None:
    env = minari.DataCollector(gymnasium.make("Hopper-v4", exclude_current_positions_from_observation=False))
    env.reset(seed=0)
    for _ in range(12):
        env.step(np.zeros(3, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env.create_dataset("made/hopper-v0")
    env.close()
    log = load_dataset("made/hopper-v0")
    task = get_task(log.metadata.task or "")
    assert (log.obs_dim, task.obs_dim, task.scores) == (12, 12, None)
    assert task.env_kwargs == {"exclude_current_positions_from_observation": False}
    assert "returns are measured in the environment that the dataset names" in log.metadata.notes[0]
    assert load_dataset("made/hopper-v0", task=task.name).metadata.notes == (), "it was said"


def test_dictionary_observations_lie_side_by_side() -> None:
    space = spaces.Dict({"goal": spaces.Box(-9, 9, (2,)), "body": spaces.Box(-9, 9, (3,))})
    rng = np.random.default_rng(0)
    obs = {"goal": rng.normal(size=(16, 2)).astype("f4"), "body": rng.normal(size=(16, 3)).astype("f4")}
    create("made/goal-v0", [buffer(15, terminates=True, seed=0, obs=obs)], observation_space=space)
    log = read_minari("made/goal-v0")
    flat: Any = np.array([spaces.flatten(space, {k: v[t] for k, v in obs.items()}) for t in range(16)])
    np.testing.assert_array_equal(log.obs, flat[:-1])
    np.testing.assert_array_equal(log.next_obs, flat[1:])
    assert log.metadata.obs_names == ("body[0]", "body[1]", "body[2]", "goal[0]", "goal[1]")
    assert log.metadata.action_names is None
    assert "observations with parts are laid out as one vector: body (3), goal (2)" in log.metadata.notes


def test_discrete_actions_are_refused() -> None:
    actions = np.zeros(15, np.int64)
    create(
        "made/grid-v0", [buffer(15, terminates=True, seed=0, action=actions)], action_space=spaces.Discrete(4)
    )
    with pytest.raises(UserError, match="actions: a Discrete space is not supported"):
        read_minari("made/grid-v0")


def test_unknown_and_damaged_datasets_give_one_sentence() -> None:
    with pytest.raises(UserError, match="There is no Minari dataset 'made/none-v0'"):
        read_minari("made/none-v0")
    dataset = create("made/broken-v0", [buffer(15, terminates=True, seed=0)])
    data = Path(dataset.storage.data_path) / "main_data.hdf5"
    data.write_bytes(data.read_bytes()[:300])
    with pytest.raises(UserError, match=r"made/broken-v0/data/main_data\.hdf5 is truncated or corrupt"):
        load_dataset("made/broken-v0")


def test_actions_outside_the_space_are_found() -> None:
    create("made/wild-v0", [buffer(15, terminates=True, seed=0, action=np.full((15, 2), 3.0, np.float32))])
    with pytest.raises(UserError, match=r"action, row 0: component 0 is 3, outside its bounds \[-1, 1\]"):
        read_minari("made/wild-v0")


def test_a_folder_may_be_named_directly() -> None:
    dataset = create("made/folder-v0", [buffer(15, terminates=True, seed=0)])
    folder = Path(dataset.storage.data_path).parent
    assert len(load_dataset(folder)) == len(load_dataset("minari:made/folder-v0")) == 15

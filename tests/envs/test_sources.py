from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mcetm import Transitions, UserError, collect, load_dataset
from mcetm.envs import collect_recipe, recipes
from mcetm.envs.recipes import dataset_path
from mcetm.tasks import RECIPES, read_policy
from tests.conftest import assert_same, random_fields, write_hdf5
from tests.tasks.test_policy import arrays


def put_policy(folder: Path, name: str, obs_dim: int = 11, action_dim: int = 3) -> Path:
    (folder / "policies").mkdir(parents=True, exist_ok=True)
    path = folder / "policies" / f"{name}.npz"
    np.savez(path, **arrays(obs_dim, action_dim))
    return path


def test_a_file_comes_before_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Transitions
) -> None:
    monkeypatch.chdir(tmp_path)
    log.save(tmp_path / "data.npz")
    (tmp_path / "data.npz").rename(tmp_path / "pendulum-mixed")
    assert_same(load_dataset("pendulum-mixed"), log)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nothing.hdf5", "There is no file nothing.hdf5"),
        ("hoper-medium", "Unknown dataset 'hoper-medium'; did you mean 'hopper-medium'"),
        ("d4rl:hopper-expert-v2", "Unknown D4RL dataset 'hopper-expert-v2'; did you mean"),
        ("minari:a/b-v0", "There is no Minari dataset 'a/b-v0'"),
        ("toy/test-v1", "There is no Minari dataset 'toy/test-v1'"),
        ("hopper", "'hopper' is a task, not a dataset; its datasets are: hopper-random, hopper-medium"),
        ("", "Unknown dataset ''"),
    ],
)
def test_unknown_sources(source: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        load_dataset(source)


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        load_dataset(tmp_path)


def test_the_embedded_default_is_collected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_dataset("pendulum-mixed")
    assert len(first) == 40_000
    assert dataset_path(RECIPES["pendulum-mixed"]).is_file()
    monkeypatch.setattr(recipes, "collect_shares", lambda *a, **k: pytest.fail("collected again"))
    assert load_dataset("pendulum-mixed").checksum == first.checksum


def test_a_damaged_cached_dataset_says_what_to_do() -> None:
    path = dataset_path(RECIPES["pendulum-mixed"])
    path.parent.mkdir(parents=True)
    collect("pendulum", 200).save(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(UserError, match="Delete it, and it will be collected again"):
        load_dataset("pendulum-mixed")


def test_the_embedded_default_covers_states_its_behaviour_makes_little_of() -> None:
    """Plan in a coarse model made of nothing but the data: the plan must beat the behaviour by far."""
    log = collect_recipe(RECIPES["pendulum-mixed"], steps=40_000)
    returns = log.episode_returns
    planned = collect("pendulum", 8000, Plan(_tabular_plan(log)), seed=1).episode_returns.mean()
    assert -1150 < returns.mean() < -900
    assert planned > returns.max() + 100, "better than the best episode in the data"
    assert planned > -450


BINS, TORQUES = (64, 48), 5


def _cells(obs: np.ndarray) -> np.ndarray:
    angle = np.arctan2(obs[:, 1], obs[:, 0])
    column = np.clip(((angle / np.pi + 1) / 2 * BINS[0]).astype(int), 0, BINS[0] - 1)
    row = np.clip(((obs[:, 2] / 8 + 1) / 2 * BINS[1]).astype(int), 0, BINS[1] - 1)
    return column * BINS[1] + row


def _tabular_plan(log: Transitions) -> np.ndarray:
    """Value iteration on visited (cell, torque) pairs; unvisited pairs are never chosen."""
    states = BINS[0] * BINS[1]
    torque = np.clip(((log.action[:, 0] / 2 + 1) / 2 * TORQUES).astype(int), 0, TORQUES - 1)
    pair = _cells(log.obs) * TORQUES + torque
    following = _cells(log.next_obs)
    counts = np.bincount(pair, minlength=states * TORQUES)
    reward = np.bincount(pair, log.reward, states * TORQUES) / np.maximum(counts, 1)
    value, quality = np.zeros(states), np.zeros((states, TORQUES))
    for _ in range(400):
        future = np.bincount(pair, value[following], states * TORQUES) / np.maximum(counts, 1)
        quality = np.where(counts > 0, reward + 0.98 * future, -1e3).reshape(states, TORQUES)
        value = quality.max(axis=1)
    return quality.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class Plan:
    """The torque a table says for the cell an observation lies in."""

    table: np.ndarray
    checksum: str = "plan"

    def sample(self, obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return ((self.table[_cells(obs)] + 0.5) / TORQUES * 4 - 2).astype(np.float32)[:, None]


def test_recipes_have_the_sizes_and_parts_they_state() -> None:
    assert len(RECIPES) == 14
    sizes = {name: recipe.transitions for name, recipe in RECIPES.items()}
    assert sizes["hopper-medium-replay"] == 402_000
    assert sizes["walker2d-medium-replay"] == 302_000
    assert sizes["halfcheetah-medium-replay"] == 202_000
    assert sizes["walker2d-medium-expert"] == 2_000_000
    replay = [part.policies[0] for part in RECIPES["halfcheetah-medium-replay"].parts]
    assert replay == [
        "uniform",
        "halfcheetah_sac_snapshot_00",
        "halfcheetah_sac_snapshot_01",
        "halfcheetah_d4rl_medium_v2",
    ]
    assert len(RECIPES["hopper-medium-replay"].parts) == 7
    assert len(RECIPES["walker2d-medium-replay"].parts) == 8


def test_a_recipe_takes_its_parts_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCETM_DATA", str(tmp_path))
    medium = put_policy(tmp_path, "hopper_d4rl_medium_v2")
    expert = put_policy(tmp_path, "hopper_sac_snapshot_08")
    log = collect_recipe(RECIPES["hopper-medium-expert"], steps=101, processes=1)
    shares = log.metadata.provenance["shares"]
    assert [share["steps"] for share in shares] == [50, 51]
    assert [share["checksums"][0] for share in shares] == [read_policy(p).checksum for p in (medium, expert)]
    assert [share["policies"] for share in shares] == [["hopper_d4rl_medium_v2"], ["hopper_sac_snapshot_08"]]
    assert log.metadata.provenance["dataset"] == "hopper-medium-expert"
    assert "substitute" in log.metadata.provenance["note"]
    assert len(log) == 101


def test_the_medium_policy_is_found_inside_d4rls_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import h5py

    monkeypatch.setenv("MCETM_DATA", str(tmp_path))
    path = write_hdf5(tmp_path / "hopper_medium-v2.hdf5", random_fields(obs_dim=11, action_dim=3))
    with h5py.File(path, "a") as file:
        for name, array in arrays(11, 3).items():
            file.create_dataset(f"metadata/policy/{name}", data=array)
    assert len(collect_recipe(RECIPES["hopper-medium"], steps=30, processes=1)) == 30


def test_missing_policies_are_all_named_with_their_origin() -> None:
    with pytest.raises(UserError) as caught:
        load_dataset("halfcheetah-medium-expert")
    sentence = str(caught.value)
    for word in (
        "halfcheetah_d4rl_medium_v2.npz",
        "halfcheetah_sac_snapshot_10.npz",
        "deep_ope",
        "MCETM_DATA",
    ):
        assert word in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("task", "policy", "sentence"),
    [
        ("hopper", "swing-up", "is for task 'pendulum', not for 'hopper'"),
        ("hopper", "unifrom", "Unknown policy 'unifrom'; did you mean 'uniform'"),
        ("hopper", "none.npz", "There is no policy file none.npz"),
    ],
)
def test_policies_that_do_not_fit(task: str, policy: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        collect(task, 10, policy)


def test_a_network_of_another_width_is_refused(tmp_path: Path) -> None:
    path = put_policy(tmp_path, "other", obs_dim=17, action_dim=6)
    with pytest.raises(UserError, match="takes 17 observations and gives 6 actions"):
        collect("hopper", 10, path)


def test_networks_act_between_the_tasks_bounds(tmp_path: Path) -> None:
    path = put_policy(tmp_path, "pendulum", obs_dim=3, action_dim=1)
    log = collect("pendulum", 200, path, deterministic=True, processes=1)
    np.testing.assert_allclose(log.action, 2.0 * read_policy(path).mode(log.obs), rtol=1e-4, atol=1e-5)


def test_a_deterministic_recipe_uses_the_mode(tmp_path: Path) -> None:
    path = put_policy(tmp_path, "policy")
    log = collect("hopper", 20, path, deterministic=True, processes=1)
    np.testing.assert_allclose(log.action, read_policy(path).mode(log.obs), rtol=1e-4, atol=1e-5)


def test_a_mixture_draws_a_policy_for_each_episode() -> None:
    log = collect("pendulum", 8000, ["uniform", "swing-up"], mix=True, processes=1)
    best = log.episode_returns > -450
    # Mixed throughout, not one after the other.
    assert 5 < best.sum() < 35
    assert best[:20].any()
    assert not best[:20].all()


def test_real_policies_reach_their_recorded_return(real_data: Path) -> None:
    path = real_data / "policies" / "hopper_d4rl_medium_v2.npz"
    log = collect("hopper", 12_000, path)
    whole = log.episode_returns[log.terminated[log.episode_ends - 1]]
    # 1240 ± 105 over ten episodes was measured when the file was made.
    assert whole.mean() == pytest.approx(1240, abs=150)

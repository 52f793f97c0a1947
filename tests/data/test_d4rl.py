from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from mcetm import UserError
from mcetm.data import Transitions, make_card, read_d4rl
from mcetm.tasks import get_task, read_policy
from tests.conftest import assert_same, random_fields, write_hdf5

SLICES = [f"{task}_{level}" for task in ("hopper", "walker2d", "halfcheetah")
          for level in ("medium-v2", "medium_replay-v1", "random-v1")]  # fmt: skip


@pytest.mark.parametrize("name", SLICES)
def test_real_slices_are_read_as_they_lie(real_data: Path, name: str) -> None:
    path = real_data / "d4rl" / f"{name}.hdf5"
    log = read_d4rl(path, infos=("qpos", "qvel"))
    with h5py.File(path) as file:
        for field, stored in (
            ("obs", "observations"),
            ("next_obs", "next_observations"),
            ("action", "actions"),
        ):
            expected: Any = file[stored]
            np.testing.assert_array_equal(getattr(log, field), expected[()].astype(np.float32))
        terminals: Any = file["terminals"]
        timeouts: Any = file["timeouts"]
        np.testing.assert_array_equal(log.terminated, terminals[()].astype(bool))
        np.testing.assert_array_equal(log.truncated, timeouts[()].astype(bool))
    assert log.num_episodes == 2
    assert log.metadata.task == name.split("_")[0]
    assert log.metadata.dropped == 0
    card = make_card(log)
    assert card.continuity.broken == 0
    assert card.rule_mismatches == 0, "the analytic rule finds every real termination and no other"
    assert len(log.infos["qpos"]) == len(log)


@pytest.mark.parametrize("task", ["hopper", "walker2d", "halfcheetah"])
def test_real_behaviour_policy_explains_the_recorded_actions(real_data: Path, task: str) -> None:
    path = real_data / "d4rl" / f"{task}_medium-v2.hdf5"
    log = read_d4rl(path, infos=("action_log_probs",))
    policy = read_policy(path)
    error = np.abs(policy.log_prob(log.obs, log.action) - log.infos["action_log_probs"])
    assert np.median(error) < 1e-3
    assert np.quantile(error, 0.99) < 1e-2
    same = read_policy(real_data / "policies" / f"{task}_d4rl_medium_v2.npz")
    assert same.checksum == policy.checksum


@pytest.mark.parametrize("name", SLICES)
def test_real_slices_without_successors_lose_only_the_rows_where_they_were_cut(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    full = read_d4rl(real_data / "d4rl" / f"{name}.hdf5")
    fields = {k: getattr(full, k) for k in ("obs", "action", "reward", "terminated", "truncated")}
    log = read_d4rl(write_hdf5(tmp_path / "log.hdf5", fields), min_transitions=1)
    cut = full.truncated & ~full.terminated
    assert log.metadata.dropped == cut.sum()
    np.testing.assert_array_equal(log.obs, full.obs[~cut])
    np.testing.assert_array_equal(log.reward, full.reward[~cut])
    np.testing.assert_array_equal(log.with_next.next_obs, full.next_obs[~(full.terminated | full.truncated)])


@pytest.mark.parametrize("name", SLICES)
def test_real_slices_without_time_outs_have_the_same_episodes(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    full = read_d4rl(real_data / "d4rl" / f"{name}.hdf5")
    fields = {k: getattr(full, k) for k in ("obs", "action", "reward", "next_obs", "terminated")}
    assert_same(read_d4rl(write_hdf5(tmp_path / "log.hdf5", fields)), full)


def test_a_made_file_is_read_as_it_lies(tmp_path: Path) -> None:
    fields = random_fields(obs_dim=11, action_dim=3)
    log = read_d4rl(write_hdf5(tmp_path / "hopper_medium-v2.hdf5", fields))
    assert_same(log, Transitions.from_arrays(**fields))
    assert log.metadata.task == "hopper"
    assert log.metadata.action_low == (-1.0,) * 3


def test_a_name_is_only_a_hint(tmp_path: Path) -> None:
    log = read_d4rl(write_hdf5(tmp_path / "hopper_mine.hdf5", random_fields(obs_dim=4)))
    assert log.metadata.task is None
    with pytest.raises(UserError, match="has 4 columns, but task 'hopper' has 11"):
        read_d4rl(tmp_path / "hopper_mine.hdf5", task="hopper")


def test_a_time_out_is_never_a_termination(tmp_path: Path) -> None:
    fields = random_fields()
    for without in ((), ("truncated",), ("next_obs",), ("truncated", "next_obs")):
        path = write_hdf5(tmp_path / f"log{len(without)}.hdf5", fields, without=without)
        log = read_d4rl(path, min_transitions=1)
        if "next_obs" in without:  # what follows the terminated row is unknown, its end is not
            assert log.terminated.sum() == 1
        else:
            np.testing.assert_array_equal(log.terminated, fields["terminated"])
            np.testing.assert_array_equal(log.truncated, fields["truncated"])


def test_without_time_outs_and_successors_the_tasks_limit_cuts(tmp_path: Path) -> None:
    limit = get_task("hopper").time_limit
    assert limit is not None
    fields = random_fields((limit, limit), obs_dim=11, action_dim=3)
    fields["terminated"][:] = False
    path = write_hdf5(tmp_path / "hopper.hdf5", fields, without=("next_obs", "truncated"))
    log = read_d4rl(path)
    assert log.episode_lengths.tolist() == [limit - 1, limit - 1]


def test_our_file_is_d4rls_layout(tmp_path: Path, log: Transitions) -> None:
    log.save(tmp_path / "log.hdf5")
    with h5py.File(tmp_path / "log.hdf5") as file:
        assert {"observations", "actions", "rewards", "next_observations", "terminals", "timeouts"} <= set(
            file
        )


def test_compression_changes_the_file_not_the_data(tmp_path: Path) -> None:
    from mcetm.data.d4rl import write_d4rl

    log = Transitions.from_arrays(obs=np.zeros((5000, 3)), reward=np.zeros(5000))
    write_d4rl(log, tmp_path / "plain.hdf5")
    write_d4rl(log, tmp_path / "small.hdf5", compress=True)
    assert (tmp_path / "small.hdf5").stat().st_size < (tmp_path / "plain.hdf5").stat().st_size / 5
    assert_same(read_d4rl(tmp_path / "small.hdf5"), log)


def _broken(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "half":
        path.write_bytes(content[: len(content) // 2])
    elif how == "head only":
        path.write_bytes(content[:100])
    elif how == "beginning lost":
        path.write_bytes(b"\0" * 16 + content[16:])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("<html>404 not found</html>")


@pytest.mark.parametrize("how", ["half", "head only", "beginning lost", "empty", "text"])
def test_damaged_files_give_one_sentence(tmp_path: Path, how: str) -> None:
    path = write_hdf5(tmp_path / "log.hdf5", random_fields((400,)))
    _broken(path, how)
    with pytest.raises(UserError) as caught:
        read_d4rl(path) if how != "empty" else Transitions.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_chunks_are_noticed_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "log.hdf5"
    fields = random_fields((500,))
    with h5py.File(path, "w") as file:
        for name, array in fields.items():
            stored = {"obs": "observations", "action": "actions"}.get(name, name)
            file.create_dataset(stored, data=array, compression="gzip", fletcher32=True)
        item: Any = file["observations"]
        offset = item.id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[offset + 50 : offset + 80] = b"\xff" * 30
    path.write_bytes(content)
    with pytest.raises(UserError, match="truncated or corrupt"):
        read_d4rl(path)


def test_a_shape_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", shape=(10**12, 17), dtype="f4", chunks=(1000, 17))
        file.create_dataset("actions", data=np.zeros((10, 2)))
    with pytest.raises(UserError, match="claim to hold 68,000,000,000,000 of 'observations'"):
        read_d4rl(path)


def test_groups_and_missing_fields_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        file.create_group("observations")
        file.create_dataset("actions", data=np.zeros((10, 2)))
    with pytest.raises(UserError, match="'observations' is not an array"):
        read_d4rl(tmp_path / "log.hdf5")
    write_hdf5(tmp_path / "other.hdf5", {"data": np.zeros(3)})
    with pytest.raises(UserError, match="observations: is missing"):
        read_d4rl(tmp_path / "other.hdf5")
    with pytest.raises(UserError, match="infos/qpos: is missing"):
        read_d4rl(write_hdf5(tmp_path / "log2.hdf5", random_fields()), infos=("qpos",))


def test_a_link_to_nothing_is_damage_not_absence(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "log.hdf5", random_fields(), without=("reward",))
    with h5py.File(path, "a") as file:
        file["rewards"] = h5py.SoftLink("/nowhere")
    with pytest.raises(UserError, match="truncated or corrupt"):
        read_d4rl(path)


def test_the_same_data_make_the_same_bytes(tmp_path: Path, log: Transitions) -> None:
    for name in ("a.hdf5", "b.hdf5"):
        log.save(tmp_path / name)
    assert (tmp_path / "a.hdf5").read_bytes() == (tmp_path / "b.hdf5").read_bytes()


def test_a_file_of_a_task_unknown_here_is_read_and_says_so(tmp_path: Path, log: Transitions) -> None:
    log.with_metadata(task="far_away").save(tmp_path / "log.hdf5")
    read = read_d4rl(tmp_path / "log.hdf5")
    assert read.metadata.task is None
    assert "the file's task 'far_away' is not registered here" in read.metadata.notes[-1]


def test_a_file_without_rewards_is_a_log_without_rewards(tmp_path: Path) -> None:
    log = read_d4rl(write_hdf5(tmp_path / "log.hdf5", random_fields(), without=("reward",)))
    assert log.metadata.absent == {"reward"}


def test_a_file_of_another_maker_must_have_actions(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "log.hdf5", random_fields(), without=("action",))
    with pytest.raises(UserError, match="cannot be used: actions: is missing"):
        read_d4rl(path)


def test_a_missing_file_is_called_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        read_d4rl(tmp_path / "none.hdf5")


@pytest.mark.parametrize("text", ["not json", '{"format": 99}', '{"format": 1}', "[1]"])
def test_a_damaged_header_is_refused(tmp_path: Path, text: str) -> None:
    path = write_hdf5(tmp_path / "log.hdf5", random_fields())
    with h5py.File(path, "a") as file:
        file.create_dataset("metadata/mcetm", data=np.bytes_(text))
    with pytest.raises(UserError, match="header: "):
        read_d4rl(path)

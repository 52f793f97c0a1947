"""Logs that stay in their files, mapped as they lie or copied once, have the rows that reading them gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import mcetm
from mcetm import Transitions, UserError
from mcetm.data import parts, streamed
from mcetm.data.d4rl import NAMES, write_d4rl
from mcetm.data.streamed import StreamedTransitions
from mcetm.data.transitions import FIELDS


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCETM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(parts, "_ROWS", 70)
    monkeypatch.setattr(parts, "_LEFT", 5)
    monkeypatch.setattr(streamed, "_PIECE", 16)
    return tmp_path / "cache" / "mapped"


@pytest.fixture
def log() -> Transitions:
    """Episodes whose rows follow each other, of which every third terminates."""
    rng = np.random.default_rng(0)
    chain = rng.normal(size=(500, 4)).astype(np.float32)
    ends = np.sort(rng.choice(np.arange(1, 499), 20, replace=False))
    terminated, truncated = np.zeros(499, bool), np.zeros(499, bool)
    terminated[ends[::3]] = True
    truncated[ends[1::3]] = truncated[ends[2::3]] = truncated[-1] = True
    return Transitions.from_arrays(
        chain[:-1], chain[:-1, :2], chain[:-1, 0], chain[1:], terminated, truncated
    )


def stays(path: Path) -> StreamedTransitions:
    """The log of a file, after the check that it has the rows and the metadata that reading gives."""
    found, expected = mcetm.load_dataset(path, in_memory=False, window=100), mcetm.load_dataset(path)
    assert isinstance(found, StreamedTransitions)
    assert found.rows_at_once < len(found)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.metadata == expected.metadata
    assert found.checksum == expected.checksum
    return found


def write(path: Path, log: Transitions, *, without: tuple[str, ...] = ()) -> Path:
    """As other programs write D4RL's layout."""
    with h5py.File(path, "w") as file:
        for field, name in NAMES.items():
            if field not in without:
                file[name] = getattr(log, field)
    return path


def test_a_plain_file_is_mapped_where_it_lies(log: Transitions, tmp_path: Path, own_cache: Path) -> None:
    log.save(tmp_path / "ours.hdf5")
    stays(tmp_path / "ours.hdf5")
    stays(write(tmp_path / "theirs.hdf5", log))
    assert not own_cache.exists()


def test_what_cannot_be_mapped_is_copied_once(log: Transitions, tmp_path: Path, own_cache: Path) -> None:
    write_d4rl(log, tmp_path / "small.hdf5", compress=True)
    stays(tmp_path / "small.hdf5")
    (copy,) = own_cache.iterdir()
    written = copy.stat().st_mtime_ns
    stays(tmp_path / "small.hdf5")
    assert copy.stat().st_mtime_ns == written
    # What follows each row is inferred, and rows of which nothing says it are dropped, as in memory.
    found = stays(write(tmp_path / "short.hdf5", log, without=("next_obs",)))
    assert found.metadata.dropped > 0
    assert not found.next_known.all()


def test_parquet_is_copied_by_whole_episodes(log: Transitions, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    columns = {f"obs_{i}": log.obs[:, i] for i in range(4)} | {
        f"action_{i}": log.action[:, i] for i in range(2)
    }
    flags = {"terminated": log.terminated, "truncated": log.truncated}
    episode = np.repeat(np.arange(log.num_episodes), log.episode_lengths)
    for name, more in (("labels", {"episode": episode}), ("flags", flags)):
        pandas.DataFrame({**columns, "reward": log.reward, **more}).to_parquet(tmp_path / f"{name}.parquet")
        stays(tmp_path / f"{name}.parquet")


def test_damage_is_found_and_named(log: Transitions, tmp_path: Path, own_cache: Path) -> None:
    path = write(tmp_path / "bad.hdf5", log)
    with h5py.File(path, "r+") as file:
        observations: Any = file["observations"]
        observations[321, 1] = np.inf
    with pytest.raises(UserError, match=r"obs, row 321: component 1 is infinite"):
        mcetm.load_dataset(path, in_memory=False)
    log.save(tmp_path / "ours.hdf5")
    with h5py.File(tmp_path / "ours.hdf5", "r+") as file:
        rewards: Any = file["rewards"]
        rewards[17] = 1000.0
    with pytest.raises(UserError, match="changed or damaged after it was written"):
        mcetm.load_dataset(tmp_path / "ours.hdf5", in_memory=False)
    assert not own_cache.exists()


def test_what_can_only_be_read_whole_is_refused(log: Transitions, tmp_path: Path) -> None:
    log.save(tmp_path / "log.npz")
    with pytest.raises(UserError, match="can only be read whole"):
        mcetm.load_dataset(tmp_path / "log.npz", in_memory=False)
    with pytest.raises(UserError, match="has no field 'timeouts' to say where"):
        mcetm.load_dataset(write(tmp_path / "a.hdf5", log, without=("truncated",)), in_memory=False)
    with pytest.raises(UserError, match="can stay on disk"):
        mcetm.load_dataset("no such log", in_memory=False)
    with pytest.raises(UserError, match="infos cannot be kept"):
        mcetm.load_dataset("pendulum-mixed", in_memory=False, infos=True)

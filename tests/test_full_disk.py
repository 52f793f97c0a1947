"""A disk without room: one sentence, exit code 2, and all that was there before is still there."""

import errno
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest

from mcetm import Transitions, UserError, load_dataset
from mcetm.cli import main
from mcetm.envs import recipes
from mcetm.files import append_text, cache_folder, write_bytes
from mcetm.pipeline.train import start_run
from tests.pipeline.runs import small_config
from tests.pipeline.test_train import policies, write_log
from tests.training import toy

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def room(most: int) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes; Python turns the signal into an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of two megabytes, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("no file system can be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def full_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the disk be full when a file is made durable, after so many that were."""
    real, left = os.fsync, [count]

    def fsync(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise FULL
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
@pytest.mark.parametrize("pages", [0, 1, 20, None])
def test_a_full_disk_keeps_the_file_that_was_to_be_replaced(
    small_disk: Path, log: Transitions, suffix: str, pages: int | None, capfd: pytest.CaptureFixture[str]
) -> None:
    target = small_disk / f"data{suffix}"
    log.save(target)
    if pages is not None:  # small files: HDF5 would write all of them when it closes them
        _fill(small_disk, leave=pages)
    before = contents(small_disk)
    steps = {0: 20, 1: 200, 20: 3000, None: 80_000}[pages]
    command = [
        "data",
        "collect",
        "--task",
        "pendulum",
        "--steps",
        str(steps),
        "--out",
        str(target),
        "--force",
    ]
    if pages is None:  # as from a shell
        code = subprocess.run([sys.executable, "-m", "mcetm", *command], check=False).returncode
    else:
        code = main(command)
    assert code == 2
    said = capfd.readouterr()
    assert said.err == f"mcetm: Cannot write {target}: No space left on device.\n"
    assert said.out == ""
    assert contents(small_disk) == before


def test_converting_onto_a_full_disk_keeps_the_file(
    small_disk: Path, tmp_path: Path, log: Transitions, capsys: pytest.CaptureFixture[str]
) -> None:
    target = small_disk / "data.hdf5"
    log.save(target)
    log.save(tmp_path / "other.npz")
    _fill(small_disk, leave=1)
    before = contents(small_disk)
    assert main(["data", "convert", str(tmp_path / "other.npz"), str(target), "--force"]) == 2
    assert capsys.readouterr().err == f"mcetm: Cannot write {target}: No space left on device.\n"
    assert contents(small_disk) == before


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_a_limit_on_sizes_keeps_the_file_too(tmp_path: Path, log: Transitions, suffix: str) -> None:
    target = tmp_path / f"data{suffix}"
    log.save(target)
    before = contents(tmp_path)
    with room(1000), pytest.raises(UserError, match=r"Cannot write .*: File too large"):
        log.save(target)
    assert contents(tmp_path) == before


def test_a_cached_dataset_is_whole_or_absent(log: Transitions, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log.with_metadata(provenance={"dataset": "pendulum-mixed"})
    monkeypatch.setattr(recipes, "collect_recipe", lambda recipe: log)
    with room(1000), pytest.raises(UserError, match="Cannot write"):
        load_dataset("pendulum-mixed")
    assert contents(cache_folder()) == {}
    assert load_dataset("pendulum-mixed").checksum == log.checksum


def test_a_disk_that_loses_bytes_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"good")
    monkeypatch.setattr(os, "fsync", lambda descriptor: os.ftruncate(descriptor, 3))
    with pytest.raises(UserError, match="what was read back is not what was written"):
        write_bytes(tmp_path / "file", b"better")
    assert contents(tmp_path) == {"file": b"good"}


def test_a_line_without_room_is_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_text(path, "first\n")
    with room(10), pytest.raises(UserError, match=r"Cannot write .*lines"):
        append_text(path, "second\n")
    append_text(path, "third\n")
    assert path.read_text() == "first\nthird\n"


@pytest.mark.parametrize("what", ["metrics", "checkpoint"])
def test_a_job_that_met_a_full_disk_goes_on_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    whole = toy.run(tmp_path / "whole", steps=60)
    folder = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        full_after(patch, 8) if what == "checkpoint" else _full_after_lines(patch, 3)
        with pytest.raises(UserError, match="Cannot write"):
            toy.run(folder, steps=60)
    assert contents(folder / "checkpoints"), "the former checkpoints stay"
    assert not list(folder.rglob("*.partial"))
    again = toy.run(folder, steps=60)
    for first, second in zip(jax.tree.leaves(whole.state), jax.tree.leaves(again.state), strict=True):
        np.testing.assert_array_equal(first, second)
    assert [line["loss"] for line in again.history] == [line["loss"] for line in whole.history]


def _full_after_lines(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the disk be full in the middle of a line of metrics, after so many whole ones."""
    lines: list[str] = []

    def append(path: Path, text: str) -> None:
        lines.append(text)
        with room(path.stat().st_size + len(text) // 2 if len(lines) > count else 2**30):
            append_text(path, text)

    monkeypatch.setattr("mcetm.training.metrics.append_text", append)


def test_a_run_on_a_full_disk_is_resumed_exactly_once_there_is_room(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log.hdf5", task=None)
    config = small_config(str(log), "algorithm.width=64", algo="bc")  # a checkpoint of several pages
    start_run(config, tmp_path / "run")
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    start_run(config, small_disk / "run")
    refused = set()
    for pages in range(200):  # a little more room each time, until it is enough
        _fill(small_disk, leave=pages)
        capsys.readouterr()
        if main(["train", "--resume", str(small_disk / "run")]) == 0:
            break
        error = capsys.readouterr().err
        found = re.fullmatch(
            r"(?:stage .*\n)*mcetm: Cannot (?:write|create the folder) (.*): No space left on device\.\n",
            error,
        )
        assert found, error
        refused.add(Path(found[1]).name)
        assert not list(small_disk.rglob("*.partial"))
        (small_disk / "filler").unlink()
    assert {"environment.json", "step-000000000020.safetensors"} <= refused
    first, second = policies(tmp_path / "run"), policies(small_disk / "run")
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def _fill(disk: Path, *, leave: int) -> None:
    """Fill a disk up to some pages."""
    page = os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(page * (os.statvfs(disk).f_bavail - leave)))

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcetm import UserError
from mcetm.files import _HOST, atomic_write, cache_folder, config_folder, data_folders


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_half_way(target: Path) -> None:
    with atomic_write(target) as partial:
        partial.write_text("half")
        raise RuntimeError


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.txt"
    with atomic_write(target) as partial:
        partial.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert names_in(target.parent) == ["file.txt"]


def test_a_failure_keeps_the_old_file_and_leaves_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError):
        fail_half_way(target)
    assert target.read_text() == "old"
    assert names_in(tmp_path) == ["file.txt"]


def test_remains_of_a_dead_writer_are_removed_and_a_living_ones_kept(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead, living = (f".file[1].{_HOST}.{pid}.00.partial" for pid in (child.pid, os.getppid()))
    elsewhere, other = f".file[1].elsewhere.{child.pid}.00.partial", f".other.{_HOST}.{child.pid}.00.partial"
    for name in (dead, living, elsewhere, other):
        (tmp_path / name).write_text("half")
    with atomic_write(tmp_path / "file[1]") as partial:
        partial.write_text("whole")
    assert names_in(tmp_path) == sorted(["file[1]", living, elsewhere, other])


def test_two_writers_in_one_process_do_not_share_a_file(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "file") as first, atomic_write(tmp_path / "file") as second:
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "file").read_text() == "first"


def test_a_refusal_of_the_file_system_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="Cannot create the folder"), atomic_write(tmp_path / "file" / "x"):
        pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="Cannot write"), atomic_write(tmp_path / "folder") as partial:
        partial.write_text("whole")


def test_folders_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCETM_CACHE", "/cache")
    monkeypatch.setenv("MCETM_DATA", os.pathsep.join(["/one", "/two"]))
    assert data_folders() == [Path("/one"), Path("/two"), Path("/cache")]
    monkeypatch.delenv("MCETM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/mcetm")
    monkeypatch.setenv("MCETM_CONFIG", "/config")
    assert config_folder() == Path("/config")
    monkeypatch.delenv("MCETM_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert config_folder() == Path("/xdg/mcetm")

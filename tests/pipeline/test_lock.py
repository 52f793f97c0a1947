"""One process trains in a folder; a killed one is in nobody's way; what is refused leaves nothing."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mcetm
from mcetm import UserError
from mcetm.cli import main
from mcetm.pipeline import lock
from mcetm.pipeline.lock import locked
from mcetm.pipeline.train import start_run
from tests.pipeline.runs import small_config

_HOLD = """
import sys
from pathlib import Path
from mcetm.pipeline.lock import locked
with locked(Path(sys.argv[1])):
    (Path(sys.argv[1]) / "kept").touch()
    print("locked", flush=True)
    sys.stdin.read()
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    """Another process that trains there."""
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "locked\n"
    return other


def test_the_second_is_refused_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    with hold(tmp_path / "run") as other:
        with (
            pytest.raises(UserError, match=r"Another process is training in .*run; wait for it"),
            locked(tmp_path / "run"),
        ):
            pass
        other.kill()
    with locked(tmp_path / "run"):
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["kept"], "no file is needed for it"


def test_where_folders_cannot_be_locked_a_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = lock._lock_descriptor

    def only_files(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").resolve().is_dir():
            raise OSError(95, "Operation not supported")
        real(descriptor)

    monkeypatch.setattr(lock, "_lock_descriptor", only_files)
    with locked(tmp_path), pytest.raises(UserError, match="Another process"), locked(tmp_path):
        pass
    with locked(tmp_path):
        assert (tmp_path / ".lock").exists()
    assert start_run(small_config(algo="bc"), tmp_path), "such a file is no other run"


def test_where_nothing_can_be_locked_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(descriptor: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(lock, "_lock_descriptor", never)
    with locked(tmp_path):
        pass
    assert "cannot be locked here" in capsys.readouterr().err


def test_only_what_a_writer_left_is_deleted(tmp_path: Path) -> None:
    mine = [tmp_path / name for name in ("notes.partial", ".hidden.partial", ".a.b.partial")]
    left = [tmp_path / ".config.json.host.12.0123abcd.partial", tmp_path / "in" / ".x.h-2.7.ffffffff.partial"]
    (tmp_path / "in").mkdir()
    for path in (*mine, *left):
        path.touch()
    with locked(tmp_path):
        pass
    assert all(path.exists() for path in mine)
    assert not any(path.exists() for path in left)


def test_a_run_killed_before_its_first_file_can_begin_again(tmp_path: Path) -> None:
    (tmp_path / ".config.json.host.12.0123abcd.partial").write_text("{")
    assert start_run(small_config(algo="bc"), tmp_path)
    assert not start_run(small_config(algo="bc"), tmp_path), "it is begun"
    (tmp_path / "config.json").unlink()
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="not empty and not a run"):
        start_run(small_config(algo="bc"), tmp_path)


def test_a_run_that_is_refused_before_it_learned_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mcetm.collect("pendulum", 400, "uniform", processes=1).save(tmp_path / "log.npz")
    out = tmp_path / "run"
    command = f"train --dataset {tmp_path / 'log.npz'} --algo bc --seeds 1 --steps 10 --out {out}"
    settings = ["--set", "algorithm.width=4", "algorithm.learning_rate=1e30"]
    assert main([*command.split(), *settings]) == 2
    assert "Training diverged" in capsys.readouterr().err
    assert not out.exists()
    with locked(out):
        (out / "config.json").mkdir()
        assert main(command.split()) == 2
    assert "Another process is training" in capsys.readouterr().err


def test_fit_has_its_folder_for_itself(tmp_path: Path) -> None:
    log = mcetm.collect("pendulum", 400, "uniform", processes=1)
    bc, said = mcetm.BC(width=4, steps=10), []

    def meanwhile(line: dict[str, object]) -> None:
        def second() -> None:
            with pytest.raises(UserError, match="Another process is training"):
                mcetm.fit(bc, log, folder=tmp_path)
            said.append(line["step"])

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    mcetm.fit(bc, log, folder=tmp_path, callbacks=[meanwhile])
    assert said == [10]

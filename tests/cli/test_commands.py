"""The command line as a person meets it: words, exit codes, and nothing left behind."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mcetm import Transitions
from mcetm.cli import main
from mcetm.data import read_d4rl
from tests.conftest import random_fields, write_hdf5


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def help_of(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    with pytest.raises(SystemExit) as stop:
        run(*command, "--help")
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("mcetm 0.")


def test_help_names_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert "data" in help_of(capsys)
    for command in ("inspect", "collect", "convert", "list"):
        assert command in help_of(capsys, "data")
    for option in ("SOURCE", "--json", "--task", "--min-transitions"):
        assert option in help_of(capsys, "data", "inspect")
    for option in ("--task", "--steps", "--out", "--policy", "--seed", "--processes", "--mix"):
        assert option in help_of(capsys, "data", "collect")


def test_no_arguments_means_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run()
    assert stop.value.code == 0
    assert "usage: mcetm" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [("data", "colect"), ("data", "inspect"), ("data", "collect", "--steps", "x")]
)
def test_a_wrong_command_line_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2


def test_help_does_not_import_jax_or_any_simulator() -> None:
    script = (
        "import sys\n"
        "from mcetm.cli import main\n"
        "try:\n    main(['data', 'inspect', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'h5py', 'gymnasium', 'mujoco', 'minari', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_inspecting_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Transitions) -> None:
    log.save(tmp_path / "log.npz")
    assert run("data", "inspect", tmp_path / "log.npz") == 0
    shown = capsys.readouterr().out
    for word in ("dataset card", "21", "3, 1 terminated and 2 truncated", "continuity", log.checksum[:16]):
        assert word in shown
    assert "only 21 transitions" in shown


def test_the_card_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Transitions) -> None:
    log.save(tmp_path / "log.npz")
    assert run("data", "inspect", tmp_path / "log.npz", "--json") == 0
    card = json.loads(capsys.readouterr().out)
    assert card["checksum"] == log.checksum
    assert card["continuity"]["broken"] == 0


def test_unusable_data_is_exit_code_2_with_every_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = random_fields()
    fields["obs"][3], fields["reward"][5] = np.nan, np.inf
    path = write_hdf5(tmp_path / "log.hdf5", fields)
    assert run("data", "inspect", path) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        f"mcetm: {path} cannot be used: 2 faults.",
        "  obs, row 3: component 0 is NaN",
        "  reward, row 5: is infinite",
    ]
    assert run("data", "inspect", path, "--json") == 2
    content = json.loads(capsys.readouterr().out)
    assert content["faults"][1] == {"field": "reward", "message": "is infinite", "row": 5}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.hdf5"]


@pytest.mark.parametrize("broken", ["half", "pickle", "text", "missing", "empty"])
def test_broken_files_are_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    path = write_hdf5(tmp_path / "log.hdf5", random_fields((300,)))
    content = {
        "half": path.read_bytes()[:3000],
        "pickle": b"\x80\x04\x95\x00",
        "text": b"hello",
        "empty": b"",
    }
    path.unlink() if broken == "missing" else path.write_bytes(content[broken])
    before = sorted(tmp_path.iterdir())
    assert run("data", "inspect", path) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"mcetm: {path}") or "There is no file" in captured.err
    assert captured.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_collecting_and_looking_at_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "data.hdf5"
    assert (
        run("data", "collect", "--task", "pendulum", "--steps", 500, "--policy", "swing-up", "--out", out)
        == 0
    )
    assert f"wrote {out}: 500 transitions" in capsys.readouterr().out
    assert run("data", "inspect", out) == 0
    assert "pendulum" in capsys.readouterr().out
    share = read_d4rl(out).metadata.provenance["shares"][0]
    assert share["checksums"] == ["SwingUp(gain=1.0, noise=0.0, catch=True)"]


def test_an_existing_file_is_kept_unless_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "data.npz"
    out.write_text("precious")
    arguments = ("data", "collect", "--task", "pendulum", "--steps", 20, "--out", out)
    assert run(*arguments) == 2
    assert "exists already; --force replaces it" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert run(*arguments, "--force") == 0
    assert len(Transitions.load(out)) == 20


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--task", "hoper", "--steps", "10"), "Unknown task 'hoper'; did you mean 'hopper'?"),
        (("--task", "hopper"), "Say how many transitions to collect from 'hopper' with --steps N."),
        (("--task", "hopper", "--steps", "0"), "--steps must be at least 1, not 0."),
        (("--task", "hopper-medium", "--policy", "x.npz"), "is a named dataset with policies of its own"),
        (("--task", "hopper-medium", "--policy", "uniform"), "is a named dataset with policies of its own"),
        (("--task", "hopper-medium"), "cannot be collected without hopper_d4rl_medium_v2.npz"),
        (("--task", "hopper", "--steps", "10", "--seed", "-1"), "'seed' should be a whole number from 0"),
    ],
)
def test_mistakes_in_collecting_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert run("data", "collect", *arguments, "--out", tmp_path / "data.hdf5") == 2
    captured = capsys.readouterr().err
    assert sentence in captured
    assert captured.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_bad_output_name_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("data", "collect", "--task", "pendulum", "--steps", 10**9, "--out", tmp_path / "data.txt") == 2
    assert "must end in .npz, .hdf5 or .h5" in capsys.readouterr().err


def test_converting_keeps_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Transitions
) -> None:
    log.save(tmp_path / "log.npz")
    assert run("data", "convert", tmp_path / "log.npz", tmp_path / "log.hdf5") == 0
    assert log.checksum[:16] in capsys.readouterr().out
    assert Transitions.load(tmp_path / "log.hdf5").checksum == log.checksum


def test_the_list_says_what_is_at_hand(log: Transitions, capsys: pytest.CaptureFixture[str]) -> None:
    from mcetm.files import cache_folder

    log.save(cache_folder() / "d4rl" / "walker2d_medium-v2.hdf5")
    assert run("data", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    at_hand = [line.split()[0] for line in lines if line.rstrip().endswith("yes")]
    assert at_hand == ["walker2d-medium-v2"]
    assert any(line.split()[:2] == ["hopper", "Hopper-v4"] for line in lines)


@pytest.mark.parametrize(
    "arguments", ["data inspect LOG --json", "data inspect LOG", "data list", "--version"]
)
def test_a_closed_pipe_is_no_error(tmp_path: Path, log: Transitions, arguments: str) -> None:
    log.save(tmp_path / "log.npz")
    command = f"{sys.executable} -m mcetm {arguments}".replace("LOG", str(tmp_path / "log.npz"))
    # The reader is gone before the first byte is written.
    script = f"({command}; echo code $? >&2) | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stderr == "code 0\n"


def test_an_impossible_output_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / "x" / "data.hdf5"
    assert run("data", "collect", "--task", "pendulum", "--steps", 10**9, "--out", out) == 2
    assert "is not a folder that can be written to" in capsys.readouterr().err


def test_converting_keeps_the_simulators_state(tmp_path: Path) -> None:
    first, second = tmp_path / "a.hdf5", tmp_path / "b.npz"
    assert run("data", "collect", "--task", "hopper", "--steps", 30, "--out", first) == 0
    assert run("data", "convert", first, second) == 0
    assert Transitions.load(second).infos["qpos"].shape == (30, 6)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs a limit on file sizes")
@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    command = (
        f"{sys.executable} -m mcetm data collect --task pendulum --steps 20000 --out {tmp_path}/data{suffix}"
    )
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; ulimit -f 100; {command}"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("mcetm: Cannot write")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

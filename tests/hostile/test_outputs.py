"""What commands write and print: never over a device or into a pipe, and names are shown and no more."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.table import Table

from mcetm import UserError
from mcetm.console import one_line, output, printable, progress
from mcetm.files import append_text, write_text
from mcetm.report.training import show_results
from tests.hostile.files import d4rl
from tests.hostile.outcomes import Outcome, assert_refused, contents, no_hang, run
from tests.pipeline.runs import write_run

NO_FILE = "it is a device or a pipe, not a file"
NASTY = "[/red]\x1b[2J\x07=1+1\n| x | $\\frac$ %"
Build = Callable[[Path], Path]


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "out.hdf5")
    return folder / "out.hdf5"


def link_to(target: str) -> Build:
    def build(folder: Path) -> Path:
        (folder / "out.hdf5").symlink_to(target)
        return folder / "out.hdf5"

    return build


def link_to_a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return link_to("pipe")(folder)


def a_folder(folder: Path) -> Path:
    (folder / "out.hdf5").mkdir()
    return folder / "out.hdf5"


def below_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "out.hdf5"


COMMANDS = {
    "data collect --task pendulum --steps 1000000000000000 --out OUT.npz": "not enough memory to collect",
    "data collect --task pendulum --steps 10 --processes 0 --out OUT.npz": "'processes' should be a whole",
    "data collect --task pendulum --steps 10 --policy OUT.csv --out OUT.npz": "There is no policy file",
    "compare RUN --csv OUT --markdown OUT": "Two tables cannot go into one file",
    "compare RUN --csv OUT --latex ./OUT": "Two tables cannot go into one file",
    "train --algo bc --dataset LOG --out OUT\0": "Cannot create the folder OUT\\x00",
    "train --algo= --dataset LOG --out OUT": "Unknown algorithm ''",
    "train --algo bc --dataset= --out OUT": "dataset",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_be_leaves_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    d4rl(tmp_path)
    write_run(tmp_path / "RUN", [1.0, 2.0])
    before = contents(tmp_path)
    found = run(*command.replace("LOG", "log.hdf5").split(" "))
    assert found.code == 2
    assert_refused(Outcome(2, "", found.err), COMMANDS[command])
    assert contents(tmp_path) == before


PLACES: dict[str, tuple[Build, str]] = {
    "a pipe": (pipe, NO_FILE),
    "a link to a pipe": (link_to_a_pipe, NO_FILE),
    "a link to /dev/full": (link_to("/dev/full"), NO_FILE),
    "a link to /dev/null": (link_to("/dev/null"), NO_FILE),
    "a link to itself": (link_to("out.hdf5"), "Cannot look at"),
    "a folder": (a_folder, "it is a folder"),
    "below a file": (below_a_file, "is not a folder that can be written to"),
    "a name too long": (lambda f: f / f"{'x' * 300}.hdf5", "File name too long"),
    "a folder's name too long": (lambda f: f / ("x" * 300) / "out.hdf5", "File name too long"),
    "another suffix": (lambda f: f / "out.csv", "the name must end in .npz, .hdf5 or .h5"),
    "escapes in the name": (lambda f: f / "\x1b[2J.csv", r"\x1b[2J.csv"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_cannot_be_written_is_refused_and_stays(place: str, tmp_path: Path) -> None:
    build, words = PLACES[place]
    source, target = d4rl(tmp_path), build(tmp_path)
    before = contents(tmp_path)
    assert_refused(run("data", "convert", source, target, "--force"), words)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("option", ["--csv", "--markdown", "--latex"])
@pytest.mark.parametrize("place", ["/dev/full", "/dev/null", "pipe", "link"])
def test_tables_never_replace_a_device(option: str, place: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/full")
    target = tmp_path / place  # an absolute path stays what it is
    folder = write_run(tmp_path / "run", [1.0, 2.0])
    assert_refused(run("compare", folder, option, target, "--out", tmp_path / "out"), NO_FILE)
    assert not stat.S_ISREG(target.stat().st_mode)
    assert not (tmp_path / "out").exists(), "refused before the work"


def test_nothing_is_appended_to_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    with no_hang(), pytest.raises(UserError, match=NO_FILE):
        append_text(tmp_path / "metrics.jsonl", "line\n")


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"
    assert contents(tmp_path) == ["link", "real", "real/file"]


@pytest.mark.parametrize("length", [100, 200, 250])
def test_a_name_as_long_as_the_system_allows_is_written(length: int, tmp_path: Path) -> None:
    target = tmp_path / f"{'x' * length}.npz"
    assert run("data", "convert", d4rl(tmp_path), target).code == 0
    assert contents(tmp_path) == sorted(["log.hdf5", target.name])


def test_names_are_shown_and_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert printable("plain ± λ …") == "plain ± λ …"
    assert printable("\x1b[2J\x07\u202e\x9b\nnext") == "\\x1b[2J\\x07\\u202e\\x9b\nnext"
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert one_line("x" * 100, 10) == "x" * 10 + "…"
    table = Table(title=NASTY)
    table.add_column(NASTY)
    table.add_row(NASTY)
    output().print(table, NASTY)
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.splitlines())
    assert shown.count("[/red]") == 4


def test_the_table_of_a_run_survives_any_name(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"mean": 1.0, "std": None, "score": 2.0, "returns": [1.0]}
    results = {"seeds": [0], "dataset": NASTY, "data_return": 0.0, "algorithms": {NASTY: found, "[b": None}}
    show_results(results, output(), normalised=True)
    shown = capsys.readouterr().out
    assert shown.count("[/red]") == 2
    assert "\x1b[2J" not in shown


def test_a_bar_survives_any_name() -> None:
    with progress(NASTY, 10, unit="steps") as advance:
        advance(3, note="[/red]")


def test_tables_in_files_survive_any_name(tmp_path: Path) -> None:
    nasty = "".join(letter for letter in NASTY if letter.isprintable())  # a run refuses the others
    folder = write_run(tmp_path / "run", [1.0, 2.0], dataset=nasty, task=None)
    other = write_run(tmp_path / "other", [1.0, 2.0], dataset="=HYPERLINK(1)", task=None)
    names = {option: tmp_path / option[2:] for option in ("--csv", "--markdown", "--latex")}
    options = [word for option, path in names.items() for word in (option, path)]
    found = run("compare", folder, other, *options, "--out", tmp_path / "out")
    assert found.code == 0, found.err
    assert "\x1b" not in found.out
    assert ",'=HYPERLINK(1)," in names["--csv"].read_text()
    rows = [line for line in names["--markdown"].read_text().splitlines() if "red" in line]
    assert all(line.startswith(("| ", "- ", "**")) for line in rows)
    assert any(r"\| x \|" in line for line in rows)
    assert all(
        "red" not in line or "&" in line or line.startswith("%")
        for line in names["--latex"].read_text().splitlines()
    )

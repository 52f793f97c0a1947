"""`mcetm study` and `mcetm bench`: found by the command line, made from settings, quick to answer."""

import dataclasses
import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

import pytest

from mcetm import cli
from mcetm_experiments.bench.run import BENCHMARKS
from mcetm_experiments.bench.settings import Bench, BenchmarkName
from mcetm_experiments.cli import COMMANDS, STUDIES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["--help", "study --help", "study energy-error --help", "bench --help"])
def test_help_imports_nothing_heavy(command: str) -> None:
    script = (
        "import sys\n"
        "from mcetm.cli import main\n"
        f"try:\n    main({command.split()})\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'numpy', 'gymnasium', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_the_project_names_the_commands_that_a_source_tree_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = project["entry-points"]["mcetm.commands"]
    points = {name: metadata.EntryPoint(name, value, "mcetm.commands") for name, value in entries.items()}
    assert {name: point.load() for name, point in points.items()} == COMMANDS


def test_a_package_can_add_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point = metadata.EntryPoint("bench", "mcetm_experiments.bench.settings:Bench", "mcetm.commands")
    monkeypatch.setattr(metadata, "entry_points", lambda group: (point,))
    monkeypatch.setattr(Bench, "run", lambda self: print("added") or 0)
    assert cli.main(["bench"]) == 0
    assert capsys.readouterr().out == "added\n"
    # Whoever names commands names all of them: nothing is looked for beside the entry points.
    with pytest.raises(SystemExit):
        cli.main(["study", "list"])


def test_the_library_works_without_the_experiments(tmp_path: Path) -> None:
    """A checkout of the library alone has no studies, and all else."""
    script = (
        "import sys, importlib.util, importlib.metadata\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'mcetm_experiments' else found(name)\n"
        "importlib.metadata.entry_points = lambda group: ()\n"
        "sys.modules['mcetm_experiments'] = None\n"
        "from mcetm.cli import main\n"
        "main(['--help'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
        cwd=tmp_path,
    )
    assert "{data,train,evaluate,compare}" in done.stdout, done.stderr


def test_the_list_says_what_each_study_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(STUDIES)
    assert all(len(line.partition(":")[2]) > 40 for line in lines)


@pytest.mark.parametrize("name", STUDIES)
def test_every_setting_of_a_study_is_frozen_and_explained(name: str) -> None:
    kind: Any = STUDIES[name]
    settings = kind()
    for field in dataclasses.fields(kind):
        pattern = rf"^    {field.name}: .*\n    \"\"\"\S"
        assert re.search(pattern, inspect.getsource(kind), re.MULTILINE), f"{field.name} has no docstring"
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, field.name, None)


def test_every_benchmark_can_be_asked_for_by_name() -> None:
    assert set(get_args(BenchmarkName)) == {"all", *BENCHMARKS}

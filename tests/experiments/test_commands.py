"""`mcetm study` and `mcetm bench`: found by the command line, made from settings, quick to answer."""

import ast
import dataclasses
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

import pytest

import mcetm_experiments
from mcetm import Transitions, cli
from mcetm_experiments.bench.run import BENCHMARKS
from mcetm_experiments.bench.settings import Bench, BenchmarkName
from mcetm_experiments.cli import COMMANDS, STUDIES
from tests.conftest import random_fields

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
    commands = re.findall(r"\w+", done.stdout.partition("{")[2].partition("}")[0])
    assert {"data", "train", "evaluate", "compare"} <= {*commands}, done.stderr
    assert not {"study", "bench"} & {*commands}


def test_the_list_says_what_each_study_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["study", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == list(STUDIES)
    assert all(len(line.partition(":")[2]) > 40 for line in lines)


def test_every_setting_is_explained() -> None:
    """Each field of the settings, and of what presets stand for, has a sentence of its own below it."""
    classes = [
        node
        for path in Path(mcetm_experiments.__file__).parent.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and re.search(r"(Study|Config|Bench|Logs|Learning)$", node.name)
    ]
    assert {"ContactStudy", "ContactConfig", "BaselinesConfig", "Bench"} <= {node.name for node in classes}
    silent = [
        f"{node.name}.{ast.unparse(field.target)}"
        for node in classes
        for field, after in itertools.pairwise([*node.body, ast.Pass()])
        if isinstance(field, ast.AnnAssign)
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]
    assert silent == []


@pytest.mark.parametrize("name", STUDIES)
def test_the_settings_of_a_study_are_frozen(name: str) -> None:
    kind: Any = STUDIES[name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind().seed = 1


def test_every_benchmark_can_be_asked_for_by_name() -> None:
    assert set(get_args(BenchmarkName)) == {"all", *BENCHMARKS}


def test_a_study_is_added_as_the_page_says(tmp_path: Path) -> None:
    """A folder with the page's files and the page's line make a command that runs."""
    page = (ROOT / "docs" / "how-to" / "add-a-study.md").read_text()
    settings, study = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (line,) = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    package = tmp_path / "mcetm_experiments"
    shutil.copytree(
        Path(mcetm_experiments.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "lengths").mkdir()
    for name, text in (("__init__", ""), ("settings", settings), ("study", study)):
        (package / "lengths" / f"{name}.py").write_text(text)
    table = (package / "cli.py").read_text()
    last = '        "energy-error":'
    assert table.count(last) == 1
    (package / "cli.py").write_text(table.replace(last, line + last))
    log = Transitions.from_arrays(**random_fields((7, 5, 9)))
    log.save(tmp_path / "log.npz")
    command = [sys.executable, "-m", "mcetm", "study", "lengths", "--dataset", "log.npz", "--out", "out"]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout == "3 episodes of 7.0 steps on average\n", done.stderr
    assert json.loads((tmp_path / "out" / "results.json").read_text())["mean"] == 7.0

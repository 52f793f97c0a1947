"""`--task module:name` with a module that does whatever it likes: one sentence, and the exit code is 2."""

import sys
from pathlib import Path

import pytest

from mcetm.cli import main
from tests.pipeline.runs import write_policy

MODULES = {
    "raise ValueError('not today')": "ValueError: not today",
    "raise ValueError('two\\nlines')": "ValueError: two lines",
    "raise ValueError": "ValueError",
    "import sys; sys.exit(0)": "SystemExit: 0",
    "raise SystemExit('bye')": "SystemExit: bye",
    "exit()": "SystemExit",
    "class Odd(BaseException): pass\nraise Odd('odd')": "Odd: odd",
    "def (": "SyntaxError: invalid syntax",
    "\tx = 1\n  y = 2": "IndentationError|TabError",
    "x = '\x00'": "(Syntax|Value)Error: source code .*null bytes",
    "import nothing_of_that_name": "No module named 'nothing_of_that_name'",
    "1 / 0": "ZeroDivisionError: division by zero",
    "def f(): f()\nf()": "RecursionError",
    "raise OSError(28, 'No space left on device')": "OSError: .*No space left",
    "raise BrokenPipeError": "BrokenPipeError",
    "import mcetm; mcetm.Task('x', 'y', 0, (), (), 1)": "UserError: Task 'x' needs at least one observation",
    "": "Unknown task 'own_tasks:jump': the module 'own_tasks' has no environment and registers no task 'jump'",
}


@pytest.mark.parametrize("source", MODULES)
@pytest.mark.parametrize("command", ["evaluate policy", "train --algo bc --out run"])
def test_a_module_that_cannot_be_imported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    source: str,
    command: str,
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own_tasks", raising=False)
    Path("own_tasks.py").write_text(source)
    write_policy(Path("policy"), "pendulum")
    assert main([*command.split(), "--task", "own_tasks:jump"]) == 2
    sys.modules.pop("own_tasks", None)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(MODULES[source], said)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    "name",
    [".own:jump", "..own:jump", "./own.py:jump", "own-tasks:jump", "a..b:jump", "own.py.x:jump", " :x"],
)
def test_a_name_that_is_none(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["train", "--task", name]) == 2
    said = capsys.readouterr().err
    assert said.startswith("mcetm: Cannot import '")
    assert said.count("\n") == 1

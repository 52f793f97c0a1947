"""The notebook runs from top to bottom, in a process of its own, and is stored with what it said."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
ONE_AFTER_THE_OTHER = """
import json, sys
import matplotlib
matplotlib.use("agg")
names = {"__name__": "__main__"}
for number, source in enumerate(json.load(sys.stdin)):
    exec(compile(source, f"cell {number}", "exec"), names)
print(f"{len(matplotlib.pyplot.get_fignums())} figures")
"""
"""What a kernel does, without one."""


def code_of(path: Path) -> list[dict]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A reader's numbers of steps make it worth reading; whether it runs, a few steps tell.
    shorter = functools.partial(re.sub, r"steps=\d[\d_]*", "steps=50")
    sources = [shorter("".join(cell["source"])) for cell in code_of(path)]
    # Notebooks and pages share the embedded dataset that they collect.
    shared = str(tmp_path_factory.getbasetemp().parent / "pages")
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_THE_OTHER],
        cwd=tmp_path,
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        env={**os.environ, "MCETM_CACHE": shared, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("2 figures\n")
    assert {"pendulum.h", "pendulum.onnx", "pendulum.npz", "pendulum.py"} <= {
        file.name for file in tmp_path.iterdir()
    }


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_as_it_ran(path: Path) -> None:
    """In the format's own schema; cell by cell, without an error, with the figures."""
    format_of = pytest.importorskip("nbformat")
    format_of.validate(format_of.read(path, as_version=4))
    cells = code_of(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert "/home/" not in json.dumps(outputs), "nobody's folders"

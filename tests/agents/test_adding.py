"""An algorithm is added as the docs say: a file, and a name in the list of its folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mcetm

DOCS = Path(__file__).parents[2] / "docs"


def block(name: str) -> str:
    """The docs' own code of a class."""
    pages = "\n".join(page.read_text() for page in sorted(DOCS.rglob("*.md")))
    blocks = re.findall(r"^```python\n(.*?)^```", pages, re.DOTALL | re.MULTILINE)
    return next(found for found in blocks if f"class {name}(" in found)


def test_an_algorithm_is_a_file_and_a_name(tmp_path: Path) -> None:
    package = tmp_path / "mcetm"
    shutil.copytree(Path(mcetm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "agents" / "worst.py").write_text("import jax.numpy as jnp\n" + block("Worst"))
    listed = (package / "agents" / "__init__.py").read_text()
    last = "ALGORITHMS: tuple"
    assert listed.count(last) == 1
    assert listed.count("IQL, BC,") == 1
    listed = listed.replace("IQL, BC,", "IQL, BC, Worst,")
    (package / "agents" / "__init__.py").write_text(
        listed.replace(last, "from mcetm.agents.worst import Worst\n\n" + last)
    )
    done = subprocess.run(
        [sys.executable, "-m", "mcetm", "settings", "worst"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert "algorithm.weight" in done.stdout, done.stderr

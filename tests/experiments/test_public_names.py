"""The experiments stand on the library's public names, so that what they do, a user can do."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcetm_experiments

HOME = Path(mcetm_experiments.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
PUBLIC = (
    "mcetm",
    "mcetm.agents",
    "mcetm.compilation",
    "mcetm.console",
    "mcetm.data",
    "mcetm.documents",
    "mcetm.dynamics",
    "mcetm.envs",
    "mcetm.estimates",
    "mcetm.evaluation",
    "mcetm.files",
    "mcetm.nn",
    "mcetm.pipeline",
    "mcetm.report",
    "mcetm.settings",
    "mcetm.tasks",
    "mcetm.training",
)
INSIDE = {
    "bench/subjects.py": {"mcetm.dynamics.reward"},
    "bench/backends.py": {"mcetm.dynamics.fused"},
}
"""Benchmarks measure parts that no user calls; what each may look into."""


def imports_of(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every imported module and name; the name is empty where a module is imported whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative imports are not for this project"
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def faults_of(source: str, place: str) -> list[str]:
    """What a file of the experiments takes from the library that is not public."""
    tree, allowed = ast.parse(source), INSIDE.get(place, set())
    faults = []
    for module, name in imports_of(tree):
        if module.split(".")[0] != "mcetm" or module in allowed or f"{module}.{name}" in allowed:
            continue
        if module not in PUBLIC or (name and name not in importlib.import_module(module).__all__):
            faults.append(f"{module} {name}".strip())
    private = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr.startswith("_"))
    others = (n for n in private if not n.attr.endswith("__") and ast.unparse(n.value) not in ("self", "cls"))
    return faults + [ast.unparse(node) for node in others]


def test_only_public_names_are_used() -> None:
    places = {path.relative_to(HOME).as_posix(): path.read_text() for path in FILES}
    assert len(places) > 40
    assert {place: faults for place, text in places.items() if (faults := faults_of(text, place))} == {}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("from mcetm.dynamics.etm import EnergySettings", "mcetm.dynamics.etm EnergySettings"),
        ("from mcetm.dynamics import _hidden", "mcetm.dynamics _hidden"),
        ("from mcetm.dynamics import fused", "mcetm.dynamics fused"),
        ("def run():\n    import mcetm.pipeline.train", "mcetm.pipeline.train"),
        ("model._start(3)", "model._start"),
    ],
)
def test_what_is_not_public_is_found(source: str, fault: str) -> None:
    assert faults_of(source, "study/study.py") == [fault]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist_and_none_is_private(name: str) -> None:
    module = importlib.import_module(name)
    assert all(hasattr(module, public) for public in module.__all__)
    assert not [public for public in module.__all__ if public.startswith("_")]


def test_what_may_look_inside_still_does() -> None:
    for place, modules in INSIDE.items():
        found = {f for m, n in imports_of(ast.parse((HOME / place).read_text())) for f in (m, f"{m}.{n}")}
        assert modules <= found, f"{place} needs less than it is allowed"


def test_no_study_imports_another() -> None:
    """What two studies need is in `shared`, or is theory; only the command line knows all of them."""
    common = {"shared", "theory"}
    for path in FILES:
        folder = path.relative_to(HOME).parts[0]
        if folder == "cli.py":
            continue
        modules = [module.split(".") for module, _ in imports_of(ast.parse(path.read_text()))]
        taken = {module[1] for module in modules if module[0] == "mcetm_experiments"}
        assert taken <= {folder} | (set() if folder in common else common), path

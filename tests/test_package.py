"""The package as a whole: what it exports, what it needs, and that its README is true."""

import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest
import tyro

import mcetm
from mcetm.cli import commands, options
from mcetm.pipeline.config import TrainConfig
from mcetm.tasks import registry
from mcetm.versions import version_of
from tests.pipeline.runs import small_config

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", mcetm.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(mcetm, name).__doc__
    assert name in dir(mcetm)


@pytest.mark.parametrize("name", [n for n in mcetm.__all__ if inspect.isfunction(getattr(mcetm, n))])
def test_every_argument_of_a_public_function_is_explained(name: str) -> None:
    function = getattr(mcetm, name)
    told = inspect.getdoc(function) or ""
    assert [
        argument for argument in inspect.signature(function).parameters if f"- `{argument}" not in told
    ] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        mcetm.nonsense  # noqa: B018


def test_the_version_is_stated_once() -> None:
    assert mcetm.__version__ == PROJECT["version"]
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation


def test_a_package_that_is_not_installed_has_no_version_and_does_no_harm() -> None:
    assert version_of("numpy")[0].isdigit()
    assert version_of("not-a-package-of-this-world") == "uninstalled"


def test_importing_the_package_imports_nothing_heavy() -> None:
    script = (
        "import sys, mcetm; sys.exit(int(bool({'jax', 'numpy', 'h5py', 'gymnasium'} & set(sys.modules))))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_dependency_that_is_known_to_break_installs() -> None:
    stated = [
        *PROJECT["dependencies"],
        *(d for group in PROJECT["optional-dependencies"].values() for d in group),
    ]
    names = {re.split(r"[\[<>=~ ]", requirement)[0] for requirement in stated}
    assert not names & {"torch", "d4rl", "gym", "mujoco-py"}


def test_every_extra_that_is_named_is_there() -> None:
    """In sentences about what is missing, and on the pages."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {name for file in files for name in re.findall(r"mcetm\[(\w+)\]", file.read_text("utf-8"))}
    assert {"mujoco", "export", "all"} <= named <= set(PROJECT["optional-dependencies"])
    everything = re.findall(r"\w+", PROJECT["optional-dependencies"]["all"][0])[1:]
    of_machines = {"cuda", "ray", "slurm", "sweep"}
    assert set(everything) == set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs"} - of_machines


def _python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = [page for page in PAGES if page.parent.name == "tutorials"]
GOES_ON = {"reading-a-report": "first-run"}
"""Tutorials that begin with what another one has left."""
GENERATED = re.compile(r"reference/(python|settings|command-line)\b")
"""Pages that only the site has; it is built with dead links as errors."""


def test_the_example_of_the_readme_works_as_written(tmp_path: Path) -> None:
    """In a process of its own, with the compiler as users have it: it trains a policy."""
    blocks = _python_blocks(PAGES[0])
    assert blocks, "the README has an example"
    blocks += [
        "assert mcetm.evaluate(agent.policies, 'pendulum').mean > data.episode_returns.mean() + 300",
    ]
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_the_first_page_of_the_site_has_the_example_of_the_readme() -> None:
    assert f"```py\n{_python_blocks(PAGES[0])[0]}```" in (ROOT / "docs" / "index.md").read_text()


def _steps(page: Path) -> str:
    """Everything that a reader of a tutorial does: modules written, commands typed, Python run."""
    parts = ["import shlex", "from mcetm.cli import main"]
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    for kind, block in blocks:
        if kind == "sh":
            parts += [f"assert main(shlex.split({line!r})[1:]) == 0, {line!r}" for line in block.splitlines()]
        elif named := re.match(r"# (\w+\.py)\n", block):
            parts.append(f"__import__('pathlib').Path({named[1]!r}).write_text({block!r})")
        else:
            parts.append(block)
    return "\n".join(parts)


def _small(preset: str, **options: Any) -> TrainConfig:
    """A run that trains in no time, with no other algorithm in its table."""
    found = small_config(**{**options, "dataset": options.pop("dataset")})
    return replace(found, baselines=())


@pytest.mark.parametrize("name", [page.stem for page in TUTORIALS if page.stem not in GOES_ON])
def test_a_tutorial_works_as_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands too, and the pages that go on from it; what is trained is small."""
    pages = [page for page in TUTORIALS if page.stem == name or GOES_ON.get(page.stem) == name]
    script = tmp_path / "page.py"
    script.write_text("\n".join(map(_steps, pages)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_MADE", {})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr("mcetm.pipeline.presets.make_config", _small)
    with jax.numpy_dtype_promotion("standard"):
        runpy.run_path(str(script), run_name="__main__")
    said = capsys.readouterr().out
    assert ("report: run/report.html" in said) == ("'mcetm train" in script.read_text())
    for module in ("room", "linear"):
        sys.modules.pop(module, None)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES[1:] if page not in TUTORIALS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_examples_of_a_page_work_as_written(
    page: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of one page run one after the other in one folder, as a reader would paste them."""
    script = tmp_path / "page.py"
    script.write_text("\n".join(_python_blocks(page)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    # Pages share the embedded dataset that they collect.
    monkeypatch.setenv("MCETM_CACHE", str(tmp_path_factory.getbasetemp().parent / "pages"))
    with jax.numpy_dtype_promotion("standard"):  # as readers have it
        runpy.run_path(str(script), run_name="__main__")


def _commands(page: Path) -> list[list[str]]:
    """The words of every `mcetm` command in a page's blocks of shell."""
    blocks = re.findall(r"^```(?:sh|bash)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"^(\w+=\S+ )+", "", line) for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("mcetm ")]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if _commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_on_a_page_are_understood(page: Path) -> None:
    """Their names and options exist; nothing is run."""
    for words in _commands(page):
        if words == ["--version"]:
            continue
        code: Any = 0
        try:
            tyro.extras.subcommand_cli_from_dict(commands(), args=words, config=options())
        except SystemExit as end:
            code = end.code
        assert code == 0, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    words = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", words):
        there = GENERATED.search(os.path.normpath(page.parent / target)) or (page.parent / target).exists()
        assert there, f"{page.name} links to {target}"

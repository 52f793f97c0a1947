"""`mcetm export`: what is written, and what is refused in a sentence."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcetm.cli import main
from tests.export.example import ABOUT, scored_policy
from tests.pipeline.runs import write_run

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "export.md"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the policies of seeds 3 and 10."""
    for seed in (10, 3):
        policy = replace(scored_policy(), about={**ABOUT, "seed": seed})
        policy.save(tmp_path / "run" / "policy" / f"seed-{seed}")
    monkeypatch.chdir(tmp_path)
    return Path("run")


def export(*arguments: object) -> int:
    return main(["export", *map(str, arguments)])


def test_the_first_seed_is_written_beside_the_user(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(run, "--to", "h") == 0
    assert "wrote policy.h: algorithm MC-ETM, seed 3; trusted up to 6" in capsys.readouterr().out
    assert "policy_act" in Path("policy.h").read_text()


def test_a_seed_and_a_file_can_be_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(run, "--seed", 10, "--out", "new/plant.npz") == 0
    assert "wrote new/plant.npz and new/plant.py: algorithm MC-ETM, seed 10" in capsys.readouterr().out
    with np.load("new/plant.npz") as found:
        assert b'"seed": 10' in bytes(found["about"])


@pytest.mark.parametrize(("arguments", "words"), [
    (["run"], "Say which kind of file"),
    (["run", "--to", "onnx", "--out", "p.h"], "p.h does not end with .onnx"),
    (["run", "--out", "policy.pt"], "names no kind of export"),
    (["run", "--to", "onnx", "--seed", "4"], "no policy of seed 4; its seeds: 3, 10"),
    (["nowhere", "--to", "onnx"], "holds no policy"),
    (["nowhere", "--to", "onnx", "--seed", "1"], "its seeds: none"),
    (["run", "--out", "there.h"], "there.h exists already; --force replaces it"),
    (["run", "--out", "run/policy.h/"], None),
])  # fmt: skip
def test_a_mistake_is_one_sentence(
    run: Path, arguments: list[str], words: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.h").write_text("mine")
    if words is None:
        Path("run/policy.h").mkdir()
        words = "is a folder"
    assert export(*arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.splitlines()[-1].startswith("mcetm: ")
    assert said.count("mcetm: ") == 1
    assert Path("there.h").read_text() == "mine"


def test_a_part_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", [50, 60], algo="bc")
    assert export(run, "--part", "dynamics", "--out", tmp_path / "m.stablehlo") == 2
    assert "has no model: behaviour cloning learns without one" in capsys.readouterr().err
    assert export(run, "--part", "dynamics", "--seed", 0, "--out", tmp_path / "m.stablehlo") == 2
    assert "the seeds of a run share its model" in capsys.readouterr().err


def test_no_folder_of_the_users_travels_with_a_policy(tmp_path: Path) -> None:
    for said, name in {
        "/home/me/plant.csv": "plant.csv",
        "mujoco/hopper/expert-v0": None,
        "tank-mixed": None,
    }.items():
        policy = replace(scored_policy(), about={**ABOUT, "dataset": said})
        (path,) = policy.export(tmp_path / "p.h")
        assert f"dataset: {name or said}\n" in path.read_text()


def test_force_replaces(run: Path) -> None:
    Path("policy.onnx").write_text("old")
    assert export(run, "--to", "onnx", "--force") == 0
    assert Path("policy.onnx").stat().st_size > 1000


def test_the_program_of_the_page_compiles_and_holds_what_is_not_trusted(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    scored_policy().export(tmp_path / "policy.h")
    (source,) = re.findall(r"^```c\n(.*?)^```", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "controller.c").write_text(source)
    options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run(
        [compiler, *options, tmp_path / "controller.c", "-o", tmp_path / "controller", "-lm"], check=True
    )
    lines = "0.1 0.2 0.3\n900000 0 0\nnan 0 0\n"
    done = subprocess.run([tmp_path / "controller"], input=lines, capture_output=True, text=True, check=True)
    first, second, third = done.stdout.splitlines()
    action = scored_policy()(np.array([0.1, 0.2, 0.3], np.float32))
    np.testing.assert_allclose([float(x) for x in first.split()], action, rtol=1e-4)
    assert (second, third) == ("outside the data: fall back", "no action: fall back")

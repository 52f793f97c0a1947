"""`mcetm sweep`: from a file to a table, gone on with, and looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcetm import UserError
from mcetm.cli import main
from mcetm.pipeline import cell as cells
from mcetm.pipeline.cell_result import read_cells
from tests.cli.test_estimate import SMALL
from tests.estimates.problems import line_log

PLAN = """
title = "Two widths"
logs = ["{log}"]
seeds = 2
steps = 20
estimate = {estimate}
[[systems]]
algorithm = "bc"
grid = {{"algorithm.width" = [8, 9]}}
"""


def run(*arguments: object) -> int:
    return main(["sweep", *(str(a) for a in arguments)])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for a log that no environment belongs to."""
    folder = tmp_path_factory.mktemp("sweep")
    line_log(20).save(folder / "line.npz")
    path = folder / "widths.toml"
    path.write_text(
        PLAN.format(log=folder / "line.npz", estimate=json.dumps([*SMALL, 'estimators=["model"]']))
    )
    return path


@pytest.fixture(scope="module")
def swept(plan: Path) -> Path:
    """A sweep in which one cell has failed by itself."""
    real = cells.train_run

    def train(config: object, *others: object, **more: object) -> object:
        if config.algorithm.width == 9:  # pyright: ignore[reportAttributeAccessIssue]
            raise UserError("The loss is not finite at step 7.")
        return real(config, *others, **more)  # pyright: ignore[reportArgumentType]

    folder = plan.parent / "out"
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(cells, "train_run", train)
        assert run(plan, "--out", folder) == 1
    return folder


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever trains now fails."""
    with monkeypatch.context() as nothing:
        nothing.setattr(cells, "train_run", None)
        yield


@pytest.mark.usefixtures("untrained")
def test_a_failure_is_kept_with_its_sentence_and_not_tried_again(
    swept: Path, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in (swept / "cells").iterdir()}
    assert run(plan, "--out", swept) == 1
    assert {path: path.read_bytes() for path in (swept / "cells").iterdir()} == before
    capsys.readouterr()
    assert run("status", swept) == 0
    said = capsys.readouterr().out
    assert "1 of 2 cells done, 1 failed." in said
    assert "line, behaviour cloning width=9, seeds 0–1: failed: The loss is not finite at step 7." in said


@pytest.mark.usefixtures("untrained")
def test_without_an_environment_the_table_has_estimates_and_says_so(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("status", swept, "--json", "--csv", tmp_path / "t.csv") == 0
    found = json.loads(capsys.readouterr().out)
    (result,) = read_cells(swept)
    assert result.task is None
    assert result.estimates is not None
    values = [one.value for one in result.estimates]
    assert (
        found["comparison"]["algorithms"]["behaviour cloning width=8"]["datasets"]["line"]["returns"]
        == values
    )
    assert any("estimates, not measured" in note for note in found["comparison"]["notes"])
    assert found["policies"] == 2
    (chosen,) = found["chosen"]
    assert (chosen["chosen_by"], chosen["policies_tried"]) == ("estimates", 2)
    assert "behaviour cloning width=8" in (tmp_path / "t.csv").read_text()
    assert "What has failed" in (swept / "table.md").read_text()
    assert (swept / "compare.png").is_file()


def test_a_failure_is_tried_again_if_that_is_asked_for_and_only_that(
    swept: Path, plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(config: object, *others: object, **more: object) -> object:
        raise UserError(f"It fails with {config.algorithm.width} too.")  # pyright: ignore[reportAttributeAccessIssue]

    monkeypatch.setattr(cells, "train_run", train)
    assert run(plan, "--out", swept, "--retry") == 1
    said = capsys.readouterr().out
    assert "failed: It fails with 9 too." in said
    assert "with 8 too" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.toml"], "There is no file nowhere.toml"),
        (["status"], "Name the folder of the sweep"),
        (["status", "."], "is not a sweep"),
        (["PLAN", "--set", "sseds=3"], "'sseds' is not known there"),
        (["PLAN", "--set", "executor.gpus=1"], "'executor.local.gpus' is not known there"),
        (["PLAN", "--set", "objective=returns"], "no environment to measure returns in"),
        (["PLAN", "--set", "systems.0.grid={}", 'logs=["gone.npz"]'], "There is no file gone.npz"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_begun(
    arguments: list[str], words: str, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(plan) if a == "PLAN" else a for a in arguments]
    out = ["--out", tmp_path / "out"] if given[0] != "status" else []
    assert run(*given, *out) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

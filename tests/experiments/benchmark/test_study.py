"""The benchmark: cells are trained once, a stop loses nothing, and the page says what the files say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mcetm
from mcetm import UserError
from mcetm.pipeline import read_cells, thinned
from mcetm.pipeline.sweep import attempt
from mcetm_experiments.benchmark.settings import BenchmarkStudy

PLAN = """
title = "Two systems"
preset = "quick"
episodes = 2
worst_after = 20
tries = 5
[published]
source = "a paper"
logs = ["swings"]
[published.scores]
"behaviour cloning" = [12.5]
[[table]]
name = "main"
title = "Main"
logs = ["{log}"]
published = true
[[table.systems]]
algorithm = "bc"
set = ["algorithm.width=8", "algorithm.steps=20"]
worlds = [[100], [101]]
tuned = "as it came"
[[table.systems]]
algorithm = "td3bc"
set = ["algorithm.learner.width=8", "evaluation.episodes=1"]
steps = 20
worlds = [[100, 101]]
[[table]]
name = "half"
title = "Half of it"
logs = ["{log}"]
share = 0.5
[[table.systems]]
algorithm = "bc"
set = ["algorithm.width=8", "algorithm.steps=20"]
worlds = [[100]]
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkStudy:
    folder = tmp_path_factory.mktemp("benchmark")
    mcetm.collect("pendulum", 1000, "uniform", processes=1).save(folder / "swings.npz")
    (folder / "plan.toml").write_text(PLAN.format(log=folder / "swings.npz"))
    return BenchmarkStudy(plan=str(folder / "plan.toml"), out=folder / "out")


@pytest.fixture(scope="module")
def page(settings: BenchmarkStudy) -> str:
    assert settings.run() == 0
    return (settings.out / "benchmark.md").read_text()


def test_numbers_of_the_page_are_those_of_the_files(settings: BenchmarkStudy, page: str) -> None:
    scores = mcetm.get_task("pendulum").scores
    assert scores is not None
    cells = read_cells(settings.out)
    assert len(cells) == 4
    cloned = [cell for cell in cells if cell.label == "behaviour cloning" and cell.log == "swings"]
    means = scores.normalize(np.concatenate([np.mean(cell.returns, axis=1) for cell in cloned]))
    said = f"{means.mean():,.1f} ± {means.std(ddof=1):,.1f}"
    first = page.split("## Half")[0]
    row = next(line for line in first.splitlines() if line.startswith("| swings"))
    assert said in row
    assert f"| {said} | 12.5 |" in first, "published numbers stand beside"
    for figure in re.findall(r"\]\((.*?)\)", page):
        assert (settings.out / figure).is_file()
    assert "as it came" in page
    assert "not run" not in page.split("## Protocol")[1]
    plain = json.loads((settings.out / "results.json").read_text())
    assert plain["tables"]["main"]["algorithms"]["behaviour cloning"]["datasets"]["swings"]["seeds"] == [
        100,
        101,
    ]


def test_a_second_time_nothing_is_trained_and_the_page_is_the_same(
    settings: BenchmarkStudy, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcetm.pipeline.cell.train_run", None)
    assert settings.run() == 0
    assert (settings.out / "benchmark.md").read_text() == page


def test_what_was_not_run_stays_blank_and_what_failed_is_said(
    settings: BenchmarkStudy, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(cell: object, *others: object) -> None:
        raise UserError("it has diverged")

    monkeypatch.setattr(attempt, "run_cell", fails)
    new = BenchmarkStudy(plan=settings.plan, only=("half",), out=tmp_path)
    assert new.run() == 1
    text = (tmp_path / "benchmark.md").read_text()
    assert "Nothing of this table was run yet." in text
    assert "| Half of it | 1 of 1 |" in text
    assert "swings 50 %, behaviour cloning, seed 100: it has diverged" in text
    # What has failed is tried again if that is asked for.
    monkeypatch.undo()
    assert new.run() == 1
    assert replace(new, retry=True).run() == 0
    assert "diverged" not in (tmp_path / "benchmark.md").read_text()


def test_a_part_of_a_log_has_whole_episodes() -> None:
    log = mcetm.collect("pendulum", 2000, "uniform", processes=1)
    part = thinned(log, 0.3)
    assert len(part) == 600
    assert set(part.episode_returns) <= set(log.episode_returns)
    with pytest.raises(UserError, match="too few episodes for 99 %"):
        thinned(log, 0.99)


def test_two_logs_of_one_name_are_never_in_one_table(
    settings: BenchmarkStudy, page: str, tmp_path: Path
) -> None:
    (tmp_path / "cells").mkdir()
    for path in (settings.out / "cells").glob("*.json"):
        content = json.loads(path.read_text())
        if content["label"] == "TD3+BC":
            content["data"] = "0" * 64
        (tmp_path / "cells" / path.name).write_text(json.dumps(content))
    with pytest.raises(UserError, match="two different logs called swings"):
        BenchmarkStudy(plan=settings.plan, page=True, out=tmp_path).run()


def test_several_workers_share_the_list(settings: BenchmarkStudy, page: str, tmp_path: Path) -> None:
    command = ["study", "benchmark", "--plan", settings.plan, "--only", "half", "--jobs", "2"]
    subprocess.run(
        [sys.executable, "-m", "mcetm", *command, "--out", str(tmp_path)], check=True, capture_output=True
    )
    (ours,) = read_cells(tmp_path)
    (same,) = [cell for cell in read_cells(settings.out) if cell.key == ours.key and cell.log == ours.log]
    # Tests compile with less care than commands do, so the last digits differ.
    np.testing.assert_allclose(ours.returns, same.returns, rtol=1e-3)


def test_d4rls_own_files_are_taken_where_they_are(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        """
title = "Slices"
preset = "quick"
episodes = 1
[[table]]
name = "main"
title = "Main"
logs = ["hopper-medium", "walker2d-medium"]
[[table.systems]]
algorithm = "bc"
set = ["algorithm.width=8", "algorithm.steps=5"]
worlds = [[100]]
"""
    )
    study = BenchmarkStudy(plan=str(plan), data=real_data / "d4rl", out=tmp_path / "out")
    assert study.run() == 0
    assert {cell.log for cell in read_cells(tmp_path / "out")} == {"hopper-medium-v2", "walker2d-medium-v2"}

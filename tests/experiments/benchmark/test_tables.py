"""Tables made of the files of cells: every number is computed here once more, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mcetm.pipeline import CellResult
from mcetm_experiments.benchmark.page import write_page
from mcetm_experiments.benchmark.plan import BenchmarkPlan, planned, read_plan
from mcetm_experiments.benchmark.tables import fill

PLAN = """
title = "By hand"
preset = "quick"
worst_after = 60000
tries = 20
[[table]]
name = "main"
title = "Main"
logs = ["hopper-medium", "walker2d-medium"]
[[table.systems]]
algorithm = "mcetm"
worlds = [[100, 101], [102, 103]]
[[table.systems]]
algorithm = "mobile"
worlds = [[100, 101]]
[[table]]
name = "lambda"
title = "Sensitivity"
axis = "λ"
logs = ["hopper-medium"]
[[table.systems]]
algorithm = "mcetm"
label = "half"
at = 0.5
set = ["algorithm.penalty=0.5"]
worlds = [[100, 101]]
[[table.systems]]
algorithm = "mcetm"
label = "two"
at = 2.0
set = ["algorithm.penalty=2.0"]
worlds = [[100, 101]]
"""
SCORES = {"MC-ETM": {100: 60.0, 102: 80.0}, "MOBILE": {100: 50.0}, "half": {100: 40.0}, "two": {100: 70.0}}


@pytest.fixture
def plan(tmp_path: Path) -> BenchmarkPlan:
    (tmp_path / "plan.toml").write_text(PLAN)
    return read_plan(str(tmp_path / "plan.toml"))


def results_of(plan: BenchmarkPlan) -> list[CellResult]:
    """Two seeds of a cell are 4 apart, episodes 2; normalised scores are returns over 10."""
    found = []
    for table in plan.table:
        for one in planned(plan, table):
            seed = one.cell.config.seed
            base = 10 * SCORES[one.label][seed]
            found.append(
                CellResult(
                    key=one.cell.key,
                    log=one.cell.log,
                    label=one.label,
                    task=one.cell.log.split("-")[0],
                    scale={"random": 0.0, "expert": 1000.0, "origin": "by hand"},  # pyright: ignore[reportArgumentType]
                    data=("a" if "hopper" in one.cell.log else "b") * 64,
                    data_return=300.0,
                    rows=1000,
                    notes=["substitute for another"] if "walker" in one.cell.log else [],
                    seeds=[seed, seed + 1],
                    world=seed,
                    updates=300_000,
                    returns=[[base - 10.0, base + 10.0], [base + 30.0, base + 50.0]],
                    lengths=[[1000, 1000], [1000, 1000]],
                    curve_steps=[30_000, 60_000, 90_000, 300_000],
                    curve=[[0.0, 0.0], [base - 50.0, base], [base, base - 150.0], [base, base]],
                    diagnosis=None,
                    seconds={"policy": 10.0, "world: energies": 5.0},
                    settings={},
                    environment={"device": "none", "commit": "0"},
                )
            )
    return found


def test_scores_intervals_and_the_worst_evaluation(plan: BenchmarkPlan) -> None:
    filled = fill(plan, plan.table[0], results_of(plan))
    comparison = filled.comparison
    assert comparison is not None
    assert filled.missing == ()
    ours = comparison.summaries["MC-ETM", "hopper-medium"]
    assert ours.mean.value == pytest.approx(72.0)  # 60, 64, 80, 84
    assert ours.std == pytest.approx(np.std([60, 64, 80, 84], ddof=1))
    # Two worlds: a resampled mean is nearly that of one world in half of the draws, so the interval is wide.
    assert ours.mean.low == pytest.approx(60.0, abs=2.1)
    assert ours.mean.high == pytest.approx(84.0, abs=2.1)
    assert comparison.improvements["MC-ETM", "MOBILE"].value == 1.0
    # Evaluations before 60,000 updates do not count; the worst of a seed is below its last.
    assert filled.worst(60_000)["MC-ETM", "hopper-medium"] == pytest.approx(70.0 - (5.0 + 15.0) / 2)
    assert filled.seconds() == {"MC-ETM": 15.0, "MOBILE": 15.0}


def test_what_tries_buy(plan: BenchmarkPlan) -> None:
    filled = fill(plan, plan.table[0], results_of(plan))
    best = filled.best_of()["MC-ETM"]
    assert best[0] == pytest.approx(72.0)
    assert best[-1] == pytest.approx(84.0)
    curve = filled.bandits(20)["MC-ETM"]
    assert curve[0] == pytest.approx(72.0, abs=1.0)
    assert curve[-1] > 80.0


def test_a_cell_without_a_file_stays_blank(plan: BenchmarkPlan, tmp_path: Path) -> None:
    results = [r for r in results_of(plan) if not (r.label == "MOBILE" and "walker" in r.log)]
    filled = [fill(plan, table, results) for table in plan.table]
    assert [one.cell.log for one in filled[0].missing] == ["walker2d-medium"]
    page = write_page(tmp_path, plan, filled, results, {})
    assert "| walker2d-medium | 72.0 ± 11.8 |  |" in page
    assert "| hopper-medium | 72.0 ± 11.8 | 52.0 ± 2.8 |" in page
    assert "| Main | 1 of 6 |" in page
    assert "Substitutes for D4RL's logs of these names: walker2d-medium." in page
    assert (tmp_path / "lambda-axis.png").exists()


def test_a_table_along_an_axis_knows_its_places(plan: BenchmarkPlan) -> None:
    filled = fill(plan, plan.table[1], results_of(plan))
    assert filled.places == {"half": 0.5, "two": 2.0}


def test_nothing_at_all_is_a_page_too(plan: BenchmarkPlan, tmp_path: Path) -> None:
    page = write_page(tmp_path, plan, [fill(plan, table, []) for table in plan.table], [], {})
    assert page.count("Nothing of this table was run yet.") == 2
    assert "| Main | 6 of 6 |" in page

"""The estimates study: what it measures is what it says, and it goes on where it was stopped."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from mcetm import UserError
from mcetm_experiments.estimates import study
from mcetm_experiments.estimates.figures import show_estimates
from mcetm_experiments.estimates.measures import coverage, measures, regret, with_ties
from mcetm_experiments.estimates.settings import EstimatesStudy
from mcetm_experiments.estimates.study import run_estimates


def test_regret_is_what_choosing_by_estimates_loses() -> None:
    truth, estimates = np.array([0.0, 5.0, 10.0]), np.array([3.0, 2.0, 1.0])
    assert regret(truth, estimates, 1) == 1.0
    assert regret(truth, estimates, 2) == 0.5
    assert regret(truth, estimates, 5) == 0.0
    found = measures(truth, np.zeros(3), estimates)
    assert found["spearman"] == pytest.approx(-1.0)
    assert found["absolute_error"] == pytest.approx(5.0)
    assert found["relative_error"] == pytest.approx(0.5)


def test_policies_that_cannot_be_told_apart_are_ties() -> None:
    tied = with_ties(np.array([1.0, 9.0, 1.5, 4.0]), np.full(4, 0.5))
    assert tied.tolist() == [1.25, 9.0, 1.25, 4.0]
    assert "spearman" not in measures(np.array([1.0, 1.1, 1.2]), np.ones(3), np.arange(3.0))


def test_coverage_has_the_binomial_interval() -> None:
    assert coverage([])["share"] is None
    found = coverage([True] * 9 + [False])
    assert found["share"] == 0.9
    # Clopper and Pearson's for 9 of 10 at 90 %.
    assert found["interval"] == pytest.approx([0.6058, 0.9949], abs=1e-3)
    assert coverage([True] * 3)["interval"][1] == 1.0


def row(
    true: float, value: float | None, *, believed: bool = True, collected: bool = False
) -> dict[str, Any]:
    interval = None if value is None else [value - 1.0, value + 1.0]
    one = {"value": value, "interval": interval, "believed": believed, "reasons": [], "details": {}}
    refused = {"value": None, "interval": None, "believed": False, "reasons": [], "details": {}}
    return {
        "true": true,
        "error": 0.1,
        "collected": collected,
        "believed": believed,
        "chosen": "fqe" if value is not None else None,
        "estimates": {"fqe": one, "doubly-robust": refused},
    }


PART = {
    "log_return": 0.0,
    "quantity": "return",
    "policies": {
        "a": row(0.0, 0.5),
        "b": row(5.0, 9.0),
        "c": row(8.0, 20.0, believed=False),
        "maker": row(9.0, -50.0, collected=True),
    },
}


def test_the_study_counts_and_keeps_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "measure", lambda *a: PART)
    monkeypatch.setattr(study, "policies_of", lambda *a: {"a": None})
    monkeypatch.setattr(study, "log_of", lambda *a: None)
    monkeypatch.setattr(study, "true_returns", lambda *a: {})
    settings = EstimatesStudy(logs=("tank-mixed",), seeds=2, out=tmp_path)
    results = run_estimates(settings)
    fqe = results["summary"]["logs"]["tank-mixed"]["fqe"]
    assert (fqe["answered"], fqe["asked"], fqe["believed"]) == (6, 6, 4)
    assert fqe["coverage"]["share"] == pytest.approx(1 / 3)
    assert fqe["coverage_believed"]["share"] == pytest.approx(1 / 2)
    assert fqe["spearman"] == pytest.approx(1.0)
    assert fqe["absolute_error"] == pytest.approx((0.5 + 4.0 + 12.0) / 3), "the log's maker is apart"
    assert fqe["of_makers"]["cases"] == 2
    assert fqe["of_makers"]["share"] == 0.0
    assert results["summary"]["logs"]["tank-mixed"]["doubly-robust"]["answered"] == 0
    assert json.loads((tmp_path / "results.json").read_text())["study"] == "estimates"
    assert (tmp_path / "estimates.svg").is_file()
    said = io.StringIO()
    show_estimates(results, Console(file=said, width=220))
    assert "fitted Q evaluation" in said.getvalue()
    assert "of 4" in said.getvalue()
    monkeypatch.setattr(study, "measure", None)
    assert run_estimates(settings)["summary"] == results["summary"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"logs": ("mine.csv",)}, "'mine.csv' has none")],
)
def test_mistakes_are_one_sentence(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        run_estimates(EstimatesStudy(**{"out": tmp_path, **changes}))

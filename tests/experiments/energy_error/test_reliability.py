"""Numbers from scores and errors that are known beforehand."""

from typing import Any

import numpy as np
import pytest

from mcetm_experiments.energy_error.distrust import MODELS, SCORES
from mcetm_experiments.energy_error.reliability import COVERAGES, measure, shown_rows

RUNG = np.repeat([0, 1, 3], 100)  # nothing on rung 2


def looks(errors: np.ndarray, scores: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """The errors of both models, and a constant for every score that is not given."""
    flat = np.zeros(len(errors))
    return {
        "scores": {name: scores.get(name, flat) for name in SCORES},
        "errors": {model: {"error": errors, "mse": errors**2} for model in MODELS},
        "truncated": {"per-sample": (errors > 1.5).astype(float), "minimum": flat},
    }


@pytest.fixture
def measured() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    error = rng.uniform(0.0, 1.0, 300) + RUNG
    given = {"MC-ETM energy": error**3, "Gaussian log-std": -error}
    known = looks(np.linspace(0.0, 1.0, 101), {"MC-ETM energy": np.linspace(0.0, 1.0, 101)})
    return measure(looks(error, given), RUNG, 4, known, rate=0.1)


def test_a_score_that_knows_the_error(measured: dict[str, Any]) -> None:
    found = measured["scores"]["MC-ETM energy"]
    assert found["delta"] == pytest.approx(0.9)
    np.testing.assert_allclose(found["spearman"], [1.0, 1.0, np.nan, 1.0])
    np.testing.assert_allclose(found["auroc"], [0.5, 1.0, np.nan, 1.0])
    assert found["pooled"]["excess"] == pytest.approx(0.0, abs=1e-9)
    assert found["pooled"]["auroc"] == 1.0
    assert found["rejected"][1] == 1.0
    assert found["rejected"][0] == pytest.approx(found["false alarms"][0])
    assert found["pooled"]["error of rejected"] > 1.0 > found["pooled"]["error of accepted"]
    risk = np.asarray(found["risk"])
    assert len(risk) == len(COVERAGES)
    assert (np.diff(risk) > 0).all()


def test_a_reversed_score_and_one_that_says_nothing(measured: dict[str, Any]) -> None:
    reversed_, constant = (measured["scores"][name] for name in ("Gaussian log-std", "random"))
    assert reversed_["pooled"]["spearman"] == pytest.approx(-1.0)
    assert reversed_["pooled"]["auroc"] == 0.0
    assert reversed_["pooled"]["excess"] > 1.5
    assert np.isnan(constant["pooled"]["spearman"])
    assert constant["pooled"]["excess"] == pytest.approx(1.0)
    assert constant["pooled"]["auroc"] == 0.5


def test_a_rung_beside_the_ladder_is_measured_and_not_pooled() -> None:
    error = np.random.default_rng(0).uniform(0.0, 1.0, 300) + RUNG
    score = {"MC-ETM energy": np.where(RUNG == 3, -error, error)}  # wrong on the last rung alone
    all_rungs = looks(error, score)
    without, within = (
        measure(all_rungs, RUNG, 4, all_rungs, rate=0.1, beside=beside)["scores"]["MC-ETM energy"]
        for beside in ((3,), ())
    )
    np.testing.assert_allclose(without["auroc"], within["auroc"])
    assert without["auroc"][3] == 0.0
    assert without["pooled"]["auroc"] == without["pooled"]["spearman"] == pytest.approx(1.0)
    assert without["pooled"]["excess"] == pytest.approx(0.0, abs=1e-9)
    assert within["pooled"]["auroc"] == 0.5
    assert max(without["risk"]) < 2.0 < max(within["risk"])


def test_logarithms_are_compared_with_logarithms() -> None:
    error = np.exp(np.random.default_rng(0).standard_normal(300))
    given = {"ensemble disagreement": error**3, "MC-ETM energy": np.log(error)}
    found = measure(looks(error, given), RUNG, 4, looks(error, given), rate=0.1)["scores"]
    for name in given:  # a power of the error, and its logarithm
        assert found[name]["pooled"]["pearson of logs"] == pytest.approx(1.0)
        assert found[name]["pooled"]["pearson"] < 0.9


def test_a_score_in_units_is_held_against_the_size_of_the_error() -> None:
    error = np.random.default_rng(0).uniform(0.5, 1.0, 300) + RUNG
    given = {"MC-ETM expected error": 2.0 * error, "Gaussian total spread": np.where(RUNG == 3, 1.0, error)}
    found = measure(looks(error, given), RUNG, 4, looks(error, given), rate=0.1)["expected"]
    np.testing.assert_allclose(found["MC-ETM expected error"], [2.0, 2.0, np.nan, 2.0])
    np.testing.assert_allclose(found["Gaussian total spread"][:2], 1.0)
    assert found["Gaussian total spread"][3] < 0.3


def test_rungs_are_counted_and_averaged_apart(measured: dict[str, Any]) -> None:
    np.testing.assert_array_equal(measured["rows"], [100, 100, 0, 100])
    errors = measured["errors"]["MC-ETM"]
    np.testing.assert_allclose(errors, [0.5, 1.5, np.nan, 3.5], atol=0.1)
    assert measured["truncated"]["per-sample"][3] == 1.0


def test_rows_for_the_figure_are_whole() -> None:
    error = np.arange(300.0)
    shown = shown_rows(looks(error, {"random": 2 * error}), RUNG, 50, seed=0)
    assert len(shown["rung"]) == 50
    np.testing.assert_allclose(shown["random"], 2 * np.array(shown["MC-ETM"]))
    np.testing.assert_array_equal(RUNG[np.array(shown["MC-ETM"], int)], shown["rung"])

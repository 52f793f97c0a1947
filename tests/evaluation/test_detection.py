"""Scores of distrust against known values: ties, constants, perfect and reversed scores."""

import numpy as np
import pytest
from scipy import stats

from mcetm.evaluation.detection import (
    auroc,
    excess_risk,
    false_alarms,
    pearson,
    risk_area,
    risk_coverage,
    spearman,
)

ERROR = np.array([1.0, 2.0, 3.0, 6.0])


def test_auroc_counts_pairs_and_ties_count_half() -> None:
    assert auroc(np.array([0.0, 2.0]), np.array([1.0, 3.0])) == 0.75
    assert auroc(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0.5
    assert auroc(np.zeros(3), np.zeros(5)) == 0.5
    assert auroc(np.array([3.0]), np.array([1.0, 2.0])) == 0.0
    assert auroc(np.array([1.0]), np.array([2.0, 3.0])) == 1.0
    assert np.isnan(auroc(np.zeros(0), np.ones(2)))


def test_correlations_agree_with_scipy_and_know_no_answer_for_constants() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 5, 50).astype(float)  # many ties
    second = first + rng.normal(size=50)
    assert pearson(first, second) == pytest.approx(stats.pearsonr(first, second)[0])
    assert spearman(first, second) == pytest.approx(np.asarray(stats.spearmanr(first, second))[0])
    for measure in (pearson, spearman):
        assert measure(ERROR, -ERROR) == pytest.approx(-1.0)
        assert np.isnan(measure(np.ones(4), ERROR))
        assert np.isnan(measure(ERROR, np.ones(4)))
        assert np.isnan(measure(ERROR[:1], ERROR[:1]))
    # Ranks see through any increasing function, and a line does not.
    assert spearman(np.exp(ERROR), ERROR) == pytest.approx(1.0)
    assert pearson(np.exp(ERROR), ERROR) < 0.99


def test_correlations_of_single_precision_columns_are_taken_in_double() -> None:
    # In float32 the mean of these would already have lost the differences.
    first = (1e6 + np.arange(100)).astype(np.float32)
    assert pearson(first, np.arange(100.0)) == pytest.approx(1.0, abs=1e-12)


def test_the_risk_of_the_accepted_share() -> None:
    share, risk = risk_coverage(np.array([0.1, 0.2, 0.3, 0.4]), ERROR)
    np.testing.assert_allclose(share, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(risk, [1.0, 1.5, 2.0, 3.0])
    np.testing.assert_allclose(risk_coverage(-ERROR, ERROR)[1], [6.0, 4.5, 11 / 3, 3.0])
    assert risk_area(ERROR, ERROR) == pytest.approx(7.5 / 4)
    with pytest.raises(ValueError, match="at least one row"):
        risk_coverage(np.zeros(0), np.zeros(0))


def test_rows_that_tie_are_accepted_in_no_order() -> None:
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        error = ERROR[order]
        np.testing.assert_allclose(risk_coverage(np.zeros(4), error)[1], [3.0] * 4)
        tied = np.where(error < 2.5, 0.0, 1.0)
        np.testing.assert_allclose(risk_coverage(tied, error)[1], [1.5, 1.5, 2.5, 3.0])


def test_excess_risk_is_0_for_the_error_itself_1_for_chance_and_more_for_a_reversed_score() -> None:
    assert excess_risk(ERROR**2, ERROR) == 0.0
    assert excess_risk(np.zeros(4), ERROR) == pytest.approx(1.0)
    assert excess_risk(-ERROR, ERROR) > 1.5
    assert np.isnan(excess_risk(ERROR, np.ones(4)))
    rng = np.random.default_rng(0)
    error = rng.exponential(size=20_000)
    assert excess_risk(rng.normal(size=20_000), error) == pytest.approx(1.0, abs=0.05)


def test_false_alarms_of_a_threshold() -> None:
    known = np.arange(101.0)  # the 0.9 quantile is 90
    assert false_alarms(known, known, 0.1) == pytest.approx(10 / 101)
    assert false_alarms(known, np.array([89.0, 90.0, 91.0, 200.0]), 0.1) == 0.5
    # A score without variation is never above its own threshold.
    assert false_alarms(np.ones(9), np.ones(9), 0.1) == 0.0

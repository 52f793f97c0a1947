"""Statistics of few runs, against values known by hand, by SciPy or by analysis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mcetm.evaluation.statistics import (
    Worlds,
    bootstrap,
    interquartile_mean,
    mean,
    performance_profile,
    probability_of_improvement,
    resample,
)


def numbers(low: int = 2, high: int = 6) -> st.SearchStrategy[np.ndarray]:
    # Whole numbers make ties likely.
    return st.lists(st.integers(-5, 5), min_size=low, max_size=high).map(lambda x: np.array(x, float))


STRATA = st.lists(numbers(), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("scores", "known"),
    [
        ([7.0], 7.0),
        ([0.0, 1.0, 8.0], 3.0),  # too few to cut: the mean
        ([-1000.0, 1.0, 3.0, 1000.0], 2.0),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 80.0], 4.5),
        (list(range(100)), 49.5),
    ],
)
def test_the_interquartile_mean_is_the_mean_of_the_middle_half(scores: list[float], known: float) -> None:
    assert interquartile_mean(np.array(scores)) == pytest.approx(known)


def test_the_interquartile_mean_pools_datasets_of_different_sizes() -> None:
    strata = [np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0, 5.0, 6.0, 70.0])]
    assert bootstrap(strata).value == pytest.approx((2 + 3 + 4 + 5) / 4)


@given(STRATA)
def test_an_interval_lies_within_the_scores_and_is_the_same_for_the_same_seed(
    strata: list[np.ndarray],
) -> None:
    found, again = (bootstrap(strata, resamples=50, seed=3) for _ in range(2))
    assert found == again
    pooled = np.concatenate(strata)
    assert found.low is not None
    assert found.high is not None
    assert pooled.min() - 1e-9 <= found.low <= found.high <= pooled.max() + 1e-9


def test_other_seeds_resample_otherwise() -> None:
    strata = [np.arange(5.0) ** 2]
    assert not np.array_equal(resample(strata, 4, seed=0), resample(strata, 4, seed=1))


def test_seeds_are_resampled_within_their_dataset_only() -> None:
    strata = [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0])]
    drawn = resample(strata, 400)
    assert drawn.shape == (400, 5)
    assert set(np.unique(drawn[:, :3])) == {1.0, 2.0, 3.0}
    assert set(np.unique(drawn[:, 3:])) == {10.0, 20.0}


def test_the_difference_between_datasets_is_not_chance() -> None:
    found = bootstrap([np.full(3, 0.0), np.full(3, 100.0)], mean)
    assert (found.value, found.low, found.high) == (50.0, 50.0, 50.0)


def test_the_bootstrap_agrees_with_analysis_and_with_scipys() -> None:
    rng = np.random.default_rng(0)
    strata = [rng.normal(5 * i, 1 + i, size=40) for i in range(3)]
    found = bootstrap(strata, mean)
    # The bootstrap's own standard error of the mean of three equal strata, known in closed form.
    error = np.sqrt(sum(np.var(x) / 40 for x in strata)) / 3
    assert found.low == pytest.approx(found.value - 1.96 * error, abs=0.05 * error)
    assert found.high == pytest.approx(found.value + 1.96 * error, abs=0.05 * error)
    iqm = bootstrap(strata)
    theirs = stats.bootstrap(
        strata,
        lambda *parts, axis=-1: interquartile_mean(np.concatenate(parts, axis=axis)),
        n_resamples=5000,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert iqm.low is not None
    assert iqm.low == pytest.approx(theirs.low, abs=0.05 * (theirs.high - theirs.low))
    assert iqm.high == pytest.approx(theirs.high, abs=0.05 * (theirs.high - theirs.low))


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    truths = (20.0, 60.0)
    covered = []
    for trial in range(300):
        strata = [truth + rng.normal(size=20) for truth in truths]
        found = bootstrap(strata, mean, resamples=400, seed=trial)
        assert found.low is not None
        assert found.high is not None
        covered.append(found.low <= 40.0 <= found.high)
    assert 0.9 < np.mean(covered) < 0.99


def test_a_single_seed_anywhere_means_no_interval() -> None:
    one, two = np.array([1.0]), np.array([2.0, 4.0])
    assert (bootstrap([one, two]).low, bootstrap([one, two]).high) == (None, None)
    assert bootstrap([two]).low is not None
    assert probability_of_improvement([two], [one]).to_dict() == {"value": 1.0, "interval": None}
    assert performance_profile([one], np.array([0.0])).low is None


def test_the_probability_of_improvement_of_known_cases() -> None:
    same, above = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    assert probability_of_improvement([same], [same]).value == 0.5
    dominated = probability_of_improvement([above], [same])
    assert (dominated.value, dominated.low, dominated.high) == (1.0, 1.0, 1.0)
    # Of the six pairs (1, 3, 5) by (3, 4): two won, one tied, three lost.
    by_hand = probability_of_improvement([np.array([1.0, 3.0, 5.0])], [np.array([3.0, 4.0])])
    assert by_hand.value == pytest.approx(2.5 / 6)
    # The mean over datasets, whatever the scale and the seeds of each.
    two = probability_of_improvement([above, same * 1e6], [same, np.array([2e6])])
    assert two.value == pytest.approx((1 + 0.5) / 2)


@given(numbers(1), numbers(1))
def test_the_probability_of_improvement_is_mann_whitneys(first: np.ndarray, second: np.ndarray) -> None:
    known = stats.mannwhitneyu(first, second).statistic / (len(first) * len(second))
    assert probability_of_improvement([first], [second], resamples=5).value == pytest.approx(known)


@given(STRATA, st.integers(0, 5))
def test_one_improves_as_often_as_the_other_does_not(strata: list[np.ndarray], shift: int) -> None:
    other = [scores[::-1][: max(2, len(scores) - 1)] + shift for scores in strata]
    forth = probability_of_improvement(strata, other, resamples=5).value
    assert forth + probability_of_improvement(other, strata, resamples=5).value == pytest.approx(1.0)


def test_datasets_must_match() -> None:
    with pytest.raises(ValueError, match="2 datasets cannot be compared with 1"):
        probability_of_improvement([np.ones(2)] * 2, [np.ones(2)])


def test_the_profile_at_known_thresholds() -> None:
    strata = [np.array([0.0, 50.0]), np.array([50.0, 100.0])]
    found = performance_profile(strata, np.array([-1.0, 0.0, 49.0, 50.0, 100.0]))
    np.testing.assert_allclose(found.share, [1.0, 0.75, 0.75, 0.25, 0.0])
    assert found.low is not None
    assert found.high is not None
    # Above 0: the second dataset always is; of the first none, one or both drawn seeds are.
    assert (found.low[1], found.high[1]) == (0.5, 1.0)
    assert (found.low[0], found.high[-1]) == (1.0, 0.0)


@settings(max_examples=30)
@given(STRATA)
def test_a_profile_falls_and_its_area_is_the_mean(strata: list[np.ndarray]) -> None:
    # Scores are whole numbers, so the share is constant between them, and E[x] = -6 + ∫ P(x > τ) dτ.
    found = performance_profile(strata, np.arange(-6.0, 7.0), resamples=20)
    assert np.all(np.diff(found.share) <= 0)
    assert -6 + found.share.sum() == pytest.approx(np.concatenate(strata).mean())
    assert found.low is not None
    assert found.high is not None
    assert np.all(found.low <= found.high)


def test_seeds_of_one_world_are_drawn_together() -> None:
    # Two worlds that differ by 100; their seeds hardly differ.
    scores = np.array([0.0, 1.0, 100.0, 101.0, 0.5])
    worlds = Worlds(scores, np.array([7, 7, 9, 9, 7]))
    drawn = resample([worlds], 2000)
    assert drawn.shape == (2000, 5)
    assert set(np.unique(drawn)) == set(scores)
    # Each resample has both places of two worlds: the same world twice in half of them.
    same = ((drawn < 50).all(axis=1) | (drawn > 50).all(axis=1)).mean()
    assert same == pytest.approx(0.5, abs=0.05)


def test_few_worlds_say_less_than_many_seeds() -> None:
    scores = np.array([0.0, 1.0, 100.0, 101.0])
    alone = bootstrap([scores], mean)
    shared = bootstrap([Worlds(scores, np.array([0, 0, 1, 1]))], mean)
    assert shared.value == alone.value == 50.5
    assert alone.low is not None
    assert shared.low is not None
    assert shared.low < alone.low
    # One world has no spread to show, however many seeds it has.
    assert bootstrap([Worlds(scores, np.zeros(4))], mean).low is None


def test_worlds_of_one_seed_each_are_seeds() -> None:
    scores = np.array([3.0, 1.0, 2.0, 9.0])
    of_seeds = resample([scores], 50_000).mean(axis=1)
    of_worlds = resample([Worlds(scores, np.arange(4))], 50_000).mean(axis=1)
    assert of_worlds.std() == pytest.approx(of_seeds.std(), rel=0.02)

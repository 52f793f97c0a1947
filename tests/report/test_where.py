"""Where a policy can be trusted: what is counted, and what a page says of it."""

from dataclasses import replace

import numpy as np
import pytest

from mcetm import Policy
from mcetm.agents.regions import ColumnParts, Plane, Regions, regions_of
from mcetm.report.where import doubted, shares, where, words_of
from tests.export.example import scored_policy


def column(inside: list[float | None], rows: int = 50, name: str = "level") -> ColumnParts:
    count = len(inside)
    return ColumnParts(
        name,
        tuple(np.linspace(0.0, count, count + 1).tolist()),
        tuple(0 if share is None else rows for share in inside),
        tuple(inside),
        tuple(None if share is None else 10.0 for share in inside),
        0.5,
    )


def regions(*columns: ColumnParts, plane: Plane | None = None) -> Regions:
    return Regions(200, 150, False, 200.0, ((20.0, 0.07),), 0.8, columns, plane)


@pytest.fixture(scope="module")
def counted() -> Regions:
    """A policy that knows the second column between -1 and 1 only; the third never changes."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(-1, 1, (4000, 3)).astype("f4")
    obs[:, 1] *= 3
    obs[:, 2] = 0.5

    class Pairs:
        limit = 0.0

        def __call__(self, obs: np.ndarray, action: np.ndarray) -> np.ndarray:
            return np.abs(obs[:, 1]) - 1

        def one_in(self, score: np.ndarray) -> np.ndarray:
            return np.exp(3 * np.asarray(score)) * 200

    policy = replace(scored_policy(trust=False), world=None)
    policy.__dict__["pairs"] = Pairs()
    return regions_of([policy, policy], obs, obs, [obs[:10], obs[:10] * 0])


def test_the_column_that_puts_a_policy_outside_comes_first(counted: Regions) -> None:
    names = Policy(scored_policy().network, scored_policy().about).names
    assert [one.name for one in counted.columns] == [names[1], names[0]], (
        "a column that stays the same has none"
    )
    assert counted.columns[0].matters > 0.9 > 0.1 > counted.columns[1].matters
    assert counted.rows == sum(counted.columns[0].rows) == 8020
    assert counted.held_out == 8000
    assert counted.limit == pytest.approx(200)


def test_parts_of_its_range_are_inside_as_often_as_they_are(counted: Regions) -> None:
    first = counted.columns[0]
    for low, high, share in zip(first.edges, first.edges[1:], first.inside, strict=False):
        assert share is not None
        if low > 1 or high < -1:
            assert share == 0
        elif low > -1 and high < 1:
            assert share == 1
    good, bad, unknown = shares(first)
    assert good == pytest.approx(1 / 3, abs=0.01)
    assert (bad, unknown) == (pytest.approx(2 / 3, abs=0.01), 0)
    assert len(doubted(first)) == 2


def test_the_map_has_both_columns_and_where_the_policy_went(counted: Regions) -> None:
    plane = counted.plane
    assert plane is not None
    assert plane.visited is not None
    assert counted.columns[0].name in plane.names
    assert np.sum(plane.visited) == pytest.approx(1)
    assert np.sum(plane.rows) == counted.rows
    assert plane.worst is not None
    assert 0 < plane.worst[-1] < 0.5


def test_stretches_are_joined_and_few_rows_are_not_judged() -> None:
    found = column([1.0, 0.5, 0.7, None, 0.2, 0.99])
    assert doubted(found) == [(1.0, 3.0, pytest.approx(0.6)), (4.0, 5.0, pytest.approx(0.2))]
    assert shares(found) == (pytest.approx(2 / 6), pytest.approx(3 / 6), pytest.approx(1 / 6))
    assert doubted(column([0.0, 0.0], rows=4)) == []


def test_words_say_what_the_figure_shows() -> None:
    said = words_of(regions(column([1.0, 0.5, 0.7, 1.0])))
    assert "more unusual than 1 in 20 rows of the log" in said[0]
    assert said[1] == "Be careful where level is 1 to 3 (60% inside)."
    fine = words_of(regions(column([1.0, 0.99])))
    assert fine[-1] == "No column has a part of its range where the policy is often outside."


def test_the_figure_can_be_read_without_seeing_it_and_names_are_no_markup(counted: Regions) -> None:
    drawn = where(regions(column([1.0, 0.2], name="<b>level</b>"), plane=counted.plane))
    assert "<b>" not in drawn
    assert 'aria-label="&lt;b&gt;level&lt;/b&gt;: 50% of its range is trusted, 50% not' in drawn
    assert "20% of 50 states inside, typically as unusual as 1 in 10" in drawn
    assert drawn.count('role="img"') == 2


def test_many_columns_are_summed_up() -> None:
    many = [column([1.0, 0.1], name=f"c{i}") for i in range(14)]
    drawn = where(regions(*many))
    assert "States: 150 of held-out episodes, and 50 of the policy's own episodes." in drawn.replace(
        "&#x27;", "'"
    )
    assert "4 more columns matter less; 4 of them" in drawn
    assert "9 more columns have such parts" in drawn

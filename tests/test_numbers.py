"""Numbers are printed with the digits that they need."""

import pytest

from mcetm.numbers import number, numbers, pair, with_spread


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1072.4, "-1,072"),
        (147.3, "147"),
        (15.26, "15.3"),
        (-0.3, "-0.300"),
        (0.01234, "0.0123"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.2e-9, "1.2e-09"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (3e20, "3e+20"),
    ],
)
def test_a_number_by_itself_has_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "spread", "text"),
    [
        (-147.3, 15.2, "-147 ± 15"),
        (-0.31234, 0.0213, "-0.312 ± 0.021"),
        (104.31, 1.24, "104.3 ± 1.2"),
        (0.003, 5.2, "0.0 ± 5.2"),
        (-0.04, 5.2, "0.0 ± 5.2"),
        (-0.3, 0.0, "-0.300 ± 0"),
        (12345.678, 4321.0, "12,346 ± 4,321"),
        (0.0, 0.0, "0 ± 0"),
        (3234.3, 0.00001, "3,234.300 ± 0.000"),
    ],
)
def test_a_mean_has_the_decimals_of_its_spread(mean: float, spread: float, text: str) -> None:
    assert pair(mean, spread) == text


def test_values_are_told_apart() -> None:
    assert numbers([-0.301, -0.322, -0.298]) == ["-0.301", "-0.322", "-0.298"]
    assert numbers([-130.2, -156.4, -155.0]) == ["-130", "-156", "-155"]
    assert numbers([7.0]) == ["7.00"]
    assert with_spread([1.0]) == "1.00"
    assert with_spread([1.0, 1.5]) == "1.25 ± 0.35"

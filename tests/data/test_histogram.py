"""Histograms of values of any size."""

import numpy as np
import pytest

from mcetm.data.histogram import histogram


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e25, 1e300])
def test_values_of_any_size_are_counted(scale: float) -> None:
    values = scale * np.array([-1.0, -1.0, 0.0, 0.5, 1.0])
    counts, edges = histogram(values, 4)
    assert counts.tolist() == [2, 0, 1, 2]
    np.testing.assert_allclose(edges, scale * np.array([-1, -0.5, 0, 0.5, 1]), rtol=1e-12)


def test_neighbours_among_large_numbers_are_told_apart() -> None:
    values = np.array([1e25, np.nextafter(1e25, np.inf)])
    with pytest.raises(ValueError, match="Too many bins"):
        np.histogram(values, bins=30)
    counts, _ = histogram(values, 30)
    assert (counts[0], counts[-1], counts.sum()) == (1, 1, 2)


def test_equal_values_share_a_bin() -> None:
    counts, edges = histogram(np.full(7, 3.0), 3)
    assert counts.tolist() == [0, 7, 0]
    assert edges.tolist() == pytest.approx([2.5, 2.5 + 1 / 3, 2.5 + 2 / 3, 3.5])

import numpy as np
import pytest

from mcetm.data.intrinsic import intrinsic_dimension


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_curved_surface_has_the_dimension_of_its_coordinates(dimension: int) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.uniform(-1, 1, (20_000, dimension))
    lift = rng.normal(size=(dimension, 12))
    points = np.tanh(hidden @ lift) + 0.3 * (hidden @ rng.normal(size=(dimension, 12)))
    found = intrinsic_dimension(points.astype(np.float32))
    assert found is not None
    assert found.estimate == pytest.approx(dimension, rel=0.12)
    assert found.spread < 0.1 * dimension


def test_scale_duplicates_and_constant_columns_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5000, 2)).astype(np.float32)
    padded = np.concatenate([points * [1.0, 1e4], np.ones((5000, 1))], axis=1)
    padded = np.repeat(padded, 2, axis=0).astype(np.float32)
    found = intrinsic_dimension(padded)
    assert found is not None
    assert found.estimate == pytest.approx(2.0, rel=0.1)


def test_too_few_distinct_points_give_no_estimate() -> None:
    assert intrinsic_dimension(np.zeros((1000, 3), np.float32)) is None
    assert intrinsic_dimension(np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)) is None

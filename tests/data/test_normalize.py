import jax.numpy as jnp
import numpy as np

from mcetm.data import Normalizer, Statistics, Transitions


def test_normalised_columns_have_mean_0_and_spread_1() -> None:
    rows = np.random.default_rng(0).normal([5.0, -100.0], [0.1, 30.0], (10_000, 2)).astype(np.float32)
    normalizer = Normalizer.of(rows)
    scaled = normalizer.normalize(rows)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0, atol=1e-4)
    np.testing.assert_allclose(normalizer.denormalize(scaled), rows, rtol=1e-4)


def test_a_constant_column_is_centred_not_blown_up() -> None:
    normalizer = Normalizer.of(np.full((100, 1), 7.0, np.float32))
    np.testing.assert_array_equal(normalizer.normalize(np.array([[7.0], [8.0]], np.float32)), [[0.0], [1.0]])


def test_small_spreads_at_large_offsets_survive() -> None:
    # Single-precision sums over many rows would lose this spread.
    rows = (1000.0 + np.tile([0.0, 0.25], 50_000)[:, None]).astype(np.float32)
    assert abs(Normalizer.of(rows).std[0] - 0.125) < 1e-6


def test_statistics_cover_what_models_take_and_predict(log: Transitions) -> None:
    statistics = Statistics.of(log)
    change = log.next_obs - log.obs
    np.testing.assert_allclose(statistics.change.mean, change.mean(axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(statistics.obs.std, log.obs.std(axis=0), rtol=1e-4)
    assert statistics.action.mean.shape == (2,)
    assert statistics.reward.mean.shape == (1,)


def test_normalizers_work_on_device_arrays(log: Transitions) -> None:
    normalizer = Normalizer.of(log.obs)
    np.testing.assert_allclose(
        normalizer.normalize(jnp.asarray(log.obs)), normalizer.normalize(log.obs), rtol=1e-6
    )

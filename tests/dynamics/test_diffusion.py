"""The diffusion model: its scales, its sampler against a known law, and that it learns."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Statistics
from mcetm.dynamics.diffusion import Denoiser, DiffusionEnsemble, DiffusionModel, fit_diffusion
from mcetm.training.batches import Batch
from tests.dynamics.test_energy import LOG, two_mode_log
from tests.dynamics.test_gaussian import linear_log

SMALL = DiffusionEnsemble(width=48, depth=2, batch_size=256, steps=1500, average=0.99)


def untrained(config: DiffusionEnsemble = SMALL) -> Denoiser:
    return Denoiser(config, Statistics.of(LOG), key=jax.random.key(0))


def test_levels_fall_from_the_largest_to_the_smallest_and_end_at_zero() -> None:
    levels = np.asarray(untrained().levels())
    np.testing.assert_allclose(levels[[0, -2, -1]], [10.0, 0.002, 0.0], rtol=1e-4)
    assert (np.diff(levels) < 0).all()


def test_without_noise_the_denoiser_changes_nothing() -> None:
    x = jnp.arange(5.0)
    row = jax.tree_util.tree_map(lambda column: column[0], Batch.of(LOG))
    kept = untrained().denoise(x, jnp.asarray(1e-6), row.obs, row.action)
    np.testing.assert_allclose(kept, x, atol=1e-4)


def test_the_loss_is_the_denoisers_error_weighted_by_its_output_scale() -> None:
    """EDM's weighting 1/c_out² makes the error of D the plain error of the network."""
    model, row = untrained(), jax.tree_util.tree_map(lambda column: column[0], Batch.of(LOG))
    key = jax.random.key(5)
    level_key, noise_key = jax.random.split(key)
    sigma = jnp.exp(SMALL.level_mean + SMALL.level_std * jax.random.normal(level_key))
    clean = model.change_scale.normalize(row.next_obs - row.obs)
    noisy = clean + sigma * jax.random.normal(noise_key, clean.shape)
    error = model.denoise(noisy, sigma, row.obs, row.action) - clean
    expected = float((error**2).mean() * (sigma**2 + 1) / sigma**2)
    assert float(model.loss(row, key=key)) == pytest.approx(expected, rel=1e-3)


def test_the_sampler_draws_a_known_law() -> None:
    """With the exact denoiser of N(m, s²) the sampler must return N(m, s²)."""
    mean, std = 0.4, 0.3

    class Exact(Denoiser):
        def denoise(self, x: jax.Array, sigma: jax.Array, obs: jax.Array, action: jax.Array) -> jax.Array:
            return mean + std**2 / (std**2 + sigma**2) * (x - mean)

    model = Exact(DiffusionEnsemble(width=8, depth=1), Statistics.of(LOG), key=jax.random.key(0))  # pyright: ignore[reportCallIssue]
    obs, action = jnp.zeros(5), jnp.zeros(1)
    draw = jax.jit(jax.vmap(lambda k: model.sample(obs, action, key=k)))
    drawn = jax.vmap(model.change_scale.normalize)(draw(jax.random.split(jax.random.key(0), 4000)))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    # Few steps leave a small error in the spread.
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.06)


def test_it_samples_both_modes() -> None:
    model, _ = fit_diffusion(two_mode_log(), SMALL, key=jax.random.key(0))
    draw = eqx.filter_jit(jax.vmap(lambda k: model.sample(jnp.array([0.2]), jnp.zeros(1), key=k)))
    draws = np.asarray(draw(jax.random.split(jax.random.key(1), 400))).ravel()
    near = np.minimum(np.abs(draws - 1), np.abs(draws + 1)) < 0.25
    assert near.mean() > 0.9, "almost every sample lies in a mode"
    assert 0.35 < (draws > 0).mean() < 0.65, "and both modes are found"


def test_it_learns_mean_and_spread() -> None:
    model, history = fit_diffusion(linear_log(noise=0.2), SMALL, key=jax.random.key(0))
    assert history[-1]["loss"][0] < history[0]["loss"][0]
    data = Batch.of(linear_log(noise=0.2)).take(jnp.arange(64))
    expected, spread = 0.9 * data.obs + 0.3 * data.action, 0.2 * (0.2 + jnp.abs(data.action))

    def draws(obs: jax.Array, action: jax.Array, key: jax.Array) -> jax.Array:
        return jax.vmap(lambda k: model.sample(obs, action, key=k))(jax.random.split(key, 100))

    drawn = eqx.filter_jit(jax.vmap(draws))(data.obs, data.action, jax.random.split(jax.random.key(1), 64))
    predicted = jax.vmap(model.predict)(data.obs, data.action)
    for means in (drawn.mean(axis=1), predicted):
        assert float(jnp.abs(means - expected).mean()) < 0.25 * float(spread.mean())
    np.testing.assert_allclose(drawn.std(axis=1).mean(), spread.mean(), rtol=0.25)


def test_members_are_drawn_by_the_key_and_equal_themselves_alone() -> None:
    members = eqx.filter_vmap(lambda k: Denoiser(SMALL, Statistics.of(LOG), key=k))(
        jax.random.split(jax.random.key(0), 3)
    )
    ensemble = DiffusionModel(members)
    obs, action = jnp.asarray(LOG.obs[0]), jnp.asarray(LOG.action[0])
    draw = eqx.filter_jit(lambda k: ensemble.sample(obs, action, key=k))
    np.testing.assert_array_equal(draw(jax.random.key(1)), draw(jax.random.key(1)))
    assert not np.allclose(draw(jax.random.key(1)), draw(jax.random.key(2)))
    one = jax.tree_util.tree_map(lambda x: x[1] if eqx.is_array(x) else x, members)
    each = eqx.filter_vmap(lambda m: m.predict(obs, action))(members)
    np.testing.assert_allclose(each[1], one.predict(obs, action), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ensemble.predict(obs, action), each.mean(axis=0), rtol=1e-5, atol=1e-6)

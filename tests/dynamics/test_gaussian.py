"""The Gaussian ensemble: likelihoods, members, elites, and that it learns."""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mcetm import Statistics, Transitions
from mcetm.dynamics.gaussian import KIT, Gaussian, GaussianEnsemble, GaussianModel, fit_gaussian
from mcetm.training import EarlyStopping
from mcetm.training.batches import Batch

SMALL = GaussianEnsemble(
    members=3, elites=2, width=32, depth=2, steps=600, batch_size=128, validate_every=200
)


def linear_log(rows: int = 4000, noise: float = 0.05) -> Transitions:
    """s' = s + 0.3·a − 0.1·s + noise that grows with |a|: the mean and the spread are known."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(rows, 2)) * [1.0, 10.0]
    action = rng.uniform(-1, 1, (rows, 2))
    spread = noise * (0.2 + np.abs(action))
    following = 0.9 * obs + 0.3 * action + spread * rng.normal(size=(rows, 2))
    ends = np.arange(rows) % 50 == 49
    return Transitions.from_arrays(obs, action, np.zeros(rows), following, np.zeros(rows, bool), ends)


def one(config: GaussianEnsemble = SMALL) -> Gaussian:
    return Gaussian(config, Statistics.of(linear_log()), key=jax.random.key(0))


def test_the_energy_is_the_negative_log_density_of_the_scaled_change() -> None:
    member, log = one(), linear_log()
    obs, action, following = (jnp.asarray(x[0]) for x in (log.obs, log.action, log.next_obs))
    mean, std = member.predict(obs, action)
    expected = -stats.norm.logpdf(following, mean, std) - np.log(member.change_scale.std)
    assert float(member.energy(obs, action, following)) == pytest.approx(expected.sum(), rel=1e-4)


def test_the_log_variance_stays_between_its_bounds() -> None:
    member = eqx.tree_at(lambda m: m.network.layers[-1].bias, one(), jnp.array([0.0, 0.0, 100.0, -100.0]))
    _, log_variance = member.scaled(jnp.zeros(2), jnp.zeros(2))
    np.testing.assert_allclose(log_variance, [0.5, -10.0], atol=1e-3)


def test_beta_1_has_the_gradient_of_plain_regression_on_the_mean() -> None:
    member, row = one(), jax.tree_util.tree_map(lambda x: x[3], Batch.of(linear_log()))

    def squared(m: Gaussian) -> jax.Array:
        residual = m.change_scale.normalize(row.next_obs - row.obs) - m.scaled(row.obs, row.action)[0]
        return (residual**2).mean()

    weighted = eqx.filter_grad(lambda m: m.loss(row, beta=1.0, bound_weight=0.0)[0])(member)
    plain = eqx.filter_grad(squared)(member)
    mean_rows = slice(0, 2)
    np.testing.assert_allclose(
        weighted.network.layers[-1].weight[mean_rows],
        plain.network.layers[-1].weight[mean_rows],
        rtol=1e-4,
        atol=1e-7,
    )


def test_squared_errors_leave_the_spread_alone() -> None:
    member, row = one(), jax.tree_util.tree_map(lambda x: x[3], Batch.of(linear_log()))
    loss = lambda m: m.loss(row, beta=0.5, bound_weight=0.1, squared=True)[0]  # noqa: E731
    residual = member.change_scale.normalize(row.next_obs - row.obs) - member.scaled(row.obs, row.action)[0]
    assert float(loss(member)) == pytest.approx(float((residual**2).mean()))
    gradient = eqx.filter_grad(loss)(member)
    assert float(jnp.abs(gradient.network.layers[-1].weight[2:]).max()) == 0.0
    assert float(jnp.abs(gradient.max_log_variance).max()) == 0.0


def test_it_learns_mean_and_spread() -> None:
    train, holdout = linear_log().split(0.2)
    config = replace(SMALL, steps=5000, learning_rate=5e-3)
    ensemble, history = fit_gaussian(train, holdout, config, key=jax.random.key(0))
    # The noise itself is worth 0.018 in these units.
    assert np.mean(history[-1]["score"]) < 0.02
    obs, action = jnp.array([0.5, -4.0]), jnp.array([0.0, 0.9])
    predicted = ensemble.predict(obs, action)
    np.testing.assert_allclose(predicted, 0.9 * obs + 0.3 * action, atol=0.05)
    # The noise grows from 0.01 to 0.055 with the action; learned bounds must not squeeze that out.
    quiet, noisy = (ensemble.of_members(obs, jnp.full(2, a))[1].mean(axis=0) for a in (0.0, 0.9))
    assert bool((noisy > 1.8 * quiet).all())
    np.testing.assert_allclose(noisy, 0.055, rtol=0.3)


def test_an_ensemble_is_its_members_one_by_one() -> None:
    statistics = Statistics.of(linear_log())
    keys = jax.random.split(jax.random.key(1), 3)
    members = eqx.filter_vmap(lambda k: Gaussian(SMALL, statistics, key=k))(keys)
    ensemble = GaussianModel(members, jnp.array([2, 0]))
    obs, action, following = jnp.array([0.1, 1.0]), jnp.array([0.2, -0.3]), jnp.array([0.2, 1.1])
    mean, std = ensemble.of_members(obs, action)
    for place, number in enumerate((2, 0)):
        alone = Gaussian(SMALL, statistics, key=keys[number])
        np.testing.assert_allclose(mean[place], alone.predict(obs, action)[0], rtol=1e-5)
        np.testing.assert_allclose(std[place], alone.predict(obs, action)[1], rtol=1e-5)
        density = ensemble.negative_log_density(obs, action, following)[place]
        np.testing.assert_allclose(density, alone.energy(obs, action, following), rtol=1e-4)


def test_samples_come_from_every_elite_and_from_the_key_alone() -> None:
    statistics = Statistics.of(linear_log())
    members = eqx.filter_vmap(lambda k: Gaussian(SMALL, statistics, key=k))(
        jax.random.split(jax.random.key(1), 3)
    )
    ensemble = GaussianModel(members, jnp.array([2, 0]))
    obs, action = jnp.array([0.1, 1.0]), jnp.array([0.2, -0.3])
    keys = jax.random.split(jax.random.key(2), 4000)
    samples = jax.vmap(lambda k: ensemble.sample(obs, action, key=k))(keys)
    mean, std = ensemble.of_members(obs, action)
    np.testing.assert_allclose(samples.mean(axis=0), mean.mean(axis=0), atol=0.1 * float(std.max()))
    np.testing.assert_allclose(samples.var(axis=0), (std**2).mean(axis=0) + mean.var(axis=0), rtol=0.15)
    np.testing.assert_array_equal(ensemble.sample(obs, action, key=keys[0]), samples[0])


def test_elites_are_the_members_of_least_error() -> None:
    train, holdout = linear_log().split(0.2)
    ensemble, history = fit_gaussian(train, holdout, SMALL, key=jax.random.key(0))
    assert ensemble.elites.tolist() == np.argsort(history[-1]["score"])[:2].tolist()


def test_the_kits_settings_run_with_resampled_data_decay_and_early_stopping(tmp_path: Path) -> None:
    kit = replace(KIT, members=2, elites=1, width=16, steps=4000, validate_every=20,
                  early_stopping=EarlyStopping(patience=2, improvement=0.01))  # fmt: skip
    train, holdout = linear_log().split(0.2)
    ensemble, history = fit_gaussian(train, holdout, kit, key=jax.random.key(0), folder=tmp_path)
    assert len(kit.weight_decay) == kit.depth + 1
    assert history[-1]["step"] < 4000, "it stopped by itself"
    assert len(ensemble.elites) == 1
    assert not np.any(ensemble.members.change_scale.mean), "raw changes are predicted"


def test_a_log_without_actions_is_learned_too() -> None:
    log = linear_log()
    bare = Transitions.from_arrays(log.obs, next_obs=log.next_obs, truncated=log.truncated)
    ensemble, _ = fit_gaussian(*bare.split(0.2), replace(SMALL, steps=20), key=jax.random.key(0))
    assert ensemble.sample(jnp.zeros(2), jnp.zeros(0), key=jax.random.key(0)).shape == (2,)

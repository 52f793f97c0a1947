"""How far an ensemble's members lie apart, and the threshold on it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Statistics, Transitions
from mcetm.dynamics import CalibrationConfig, Gaussian, GaussianConfig, GaussianEnsemble, calibrate
from mcetm.dynamics.disagreement import Disagreement

RNG = np.random.default_rng(0)
LOG = Transitions.from_arrays(
    RNG.normal(size=(200, 2)),
    RNG.normal(size=(200, 1)),
    np.zeros(200),
    RNG.normal(size=(200, 2)) * [1.0, 5.0],
    np.zeros(200, bool),
    np.ones(200, bool),
)


def ensemble() -> GaussianEnsemble:
    make = lambda key: Gaussian(GaussianConfig(width=8, depth=1), Statistics.of(LOG), key=key)  # noqa: E731
    members = eqx.filter_vmap(make)(jax.random.split(jax.random.key(0), 4))
    return GaussianEnsemble(members, jnp.array([0, 2, 3]))


def test_it_is_the_largest_distance_between_two_elites() -> None:
    model, obs, action = Disagreement(ensemble()), jnp.array([0.3, -1.0]), jnp.array([0.5])
    means = np.asarray(model.regressor.predict(obs, action)[0]) / np.asarray(Statistics.of(LOG).change.std)
    wanted = max(np.linalg.norm(a - b) for a in means for b in means)
    assert float(model.apart(obs, action)) == pytest.approx(wanted, rel=1e-4)
    drawn = model.samples(obs, action, 5, key=jax.random.key(1))
    assert drawn.next_obs.shape == (3, 5, 2)
    np.testing.assert_allclose(drawn.energy, wanted, rtol=1e-4)
    np.testing.assert_allclose(model.energy(obs, action, obs), wanted, rtol=1e-4)


def test_its_threshold_lets_the_wished_share_of_data_pass() -> None:
    model = Disagreement(ensemble())
    threshold = calibrate(model, LOG, CalibrationConfig(quantile=0.9, samples=1), key=jax.random.key(0))
    apart = jax.vmap(model.apart)(jnp.asarray(LOG.obs), jnp.asarray(LOG.action))
    assert np.mean(np.asarray(apart) <= float(threshold.values[0])) == pytest.approx(0.9, abs=0.02)

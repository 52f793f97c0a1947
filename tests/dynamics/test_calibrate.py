"""A calibrated threshold truncates as often as it says."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import UserError
from mcetm.dynamics.calibrate import CalibrationConfig, Threshold, calibrate, held_out_energies
from mcetm.dynamics.energy import PlainEnergy
from mcetm.dynamics.etm import SamplerConfig, state_box
from mcetm.dynamics.inference import EnergyEnsemble, InferenceConfig, Samples
from tests.dynamics.test_energy import LOG, SCALE, STATISTICS


def model() -> EnergyEnsemble:
    members = eqx.filter_vmap(lambda k: PlainEnergy(STATISTICS, width=16, depth=2, key=k))(
        jax.random.split(jax.random.key(0), 3)
    )
    # Members at different levels: a common threshold would be a lottery.
    bias = members.network.layers[-1].bias + jnp.array([[0.0], [50.0], [-50.0]])
    members = eqx.tree_at(lambda m: m.network.layers[-1].bias, members, bias)
    config = InferenceConfig(start="noise", latent=None, ambient=SamplerConfig(steps=2))
    return EnergyEnsemble(members, SCALE, state_box(LOG), None, None, config)


@pytest.mark.parametrize("quantile", [0.8, 0.95])
def test_the_truncation_rate_on_held_out_data_is_one_minus_the_quantile(quantile: float) -> None:
    first, second = LOG.split(0.5)
    config = CalibrationConfig(quantile=quantile, samples=4, rows=1000)
    threshold = calibrate(model(), first, config, key=jax.random.key(0))
    fresh = held_out_energies(model(), second, config, key=jax.random.key(1))
    rates = np.asarray((fresh > threshold.values[:, None]).mean(axis=1))
    # Four draws per row: the error is that of about 1000 independent rows at least.
    np.testing.assert_allclose(rates, 1 - quantile, atol=4 * np.sqrt(quantile * (1 - quantile) / 1000))
    assert np.ptp(np.asarray(threshold.values)) > 50, "each member has a level of its own"


def test_the_rules() -> None:
    samples = Samples(jnp.zeros((2, 3, 1)), jnp.array([[0.0, 2.0, 3.0], [2.0, 3.0, 4.0]]))
    threshold = Threshold(jnp.array([1.0, 1.5]))
    assert threshold.exceeded(samples).tolist() == [[False, True, True], [True, True, True]]
    assert threshold.exceeded(samples, "minimum").tolist() == [[False] * 3, [True] * 3]


def test_absolute_thresholds_are_the_number_given() -> None:
    config = CalibrationConfig(mode="absolute", absolute=-2.5)
    assert calibrate(model(), LOG, config, key=jax.random.key(0)).values.tolist() == [-2.5] * 3


def test_a_senseless_quantile_is_refused() -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        calibrate(model(), LOG, CalibrationConfig(quantile=1.0), key=jax.random.key(0))

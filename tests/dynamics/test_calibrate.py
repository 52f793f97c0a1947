"""A calibrated threshold truncates as often as it says."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import UserError
from mcetm.dynamics.calibrate import (
    CalibrationSettings,
    Threshold,
    calibrate,
    conformal,
    held_out_energies,
)
from mcetm.dynamics.energy import Energy, PlainEnergy
from mcetm.dynamics.inference import EnergyTransitionModel, InferenceSettings, Samples
from mcetm.dynamics.langevin import Langevin
from tests.dynamics.test_energy import LOG, SPACE, STATISTICS


def model() -> EnergyTransitionModel:
    members = eqx.filter_vmap(lambda k: PlainEnergy(STATISTICS, SPACE, width=16, depth=2, key=k))(
        jax.random.split(jax.random.key(0), 3)
    )
    # Members at different levels: a common threshold would be a lottery.
    bias = members.network.layers[-1].bias + jnp.array([[0.0], [50.0], [-50.0]])
    members = eqx.tree_at(lambda m: m.network.layers[-1].bias, members, bias)
    config = InferenceSettings(start="noise", latent=None, ambient=Langevin(steps=2))
    return EnergyTransitionModel(members, SPACE, None, None, config)


@pytest.mark.parametrize("quantile", [0.8, 0.95])
def test_the_truncation_rate_on_held_out_data_is_one_minus_the_quantile(quantile: float) -> None:
    first, second = LOG.split(0.5)
    config = CalibrationSettings(quantile=quantile, samples=4, rows=1000)
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


def test_one_sample_can_decide_for_all() -> None:
    samples = Samples(jnp.zeros((2, 2, 1)), jnp.array([[0.0, 2.0], [2.0, 0.0]]))
    threshold = Threshold(jnp.array([1.0, 1.0]))
    for chosen, expected in (((0, 1), True), ((1, 1), False)):
        where = (jnp.asarray(chosen[0]), jnp.asarray(chosen[1]))
        assert threshold.exceeded(samples, "selected", selected=where).tolist() == [[expected] * 2] * 2
    with pytest.raises(ValueError, match="which sample"):
        threshold.exceeded(samples, "selected")


class _Shifted(Energy):
    """An energy plus some c(s, a), which InfoNCE cannot see."""

    energy: PlainEnergy
    amount: Array

    def __call__(self, obs: Array, action: Array, next_obs: Array) -> Array:
        return self.energy(obs, action, next_obs) + self.amount * jnp.sin(3 * obs.sum() + action.sum())


@eqx.filter_jit
def judge(
    model: EnergyTransitionModel, threshold: Threshold, obs: Array, action: Array, keys: Array
) -> Array:
    def one(obs: Array, action: Array, key: Array) -> Array:
        drawn = model.samples(obs, action, 4, key=key)
        return threshold.exceeded(drawn, level=threshold.level(model, obs, action))

    return jax.vmap(one)(obs, action, keys)


def test_a_relative_threshold_does_not_see_what_info_nce_does_not_see() -> None:
    """Adding c(s, a) to every member changes plain verdicts, and no relative one."""
    plain, log = model(), LOG
    row = jnp.asarray(log.obs[:50]), jnp.asarray(log.action[:50])
    verdicts: dict[str, list[np.ndarray]] = {"quantile": [], "relative": []}
    for amount in (0.0, 20.0):
        members = _Shifted(plain.members, jnp.full(3, amount))  # pyright: ignore[reportArgumentType]
        shifted = eqx.tree_at(lambda m: m.members, plain, members)
        for mode, found in verdicts.items():
            config = CalibrationSettings(mode=mode, quantile=0.8, samples=2, rows=300, references=16)  # pyright: ignore[reportArgumentType]
            threshold = calibrate(shifted, log, config, key=jax.random.key(0))

            keys = jax.random.split(jax.random.key(1), 50)
            found.append(np.asarray(judge(shifted, threshold, *row, keys)))
    assert (verdicts["relative"][0] == verdicts["relative"][1]).mean() > 0.99
    assert (verdicts["quantile"][0] == verdicts["quantile"][1]).mean() < 0.9
    assert 0.1 < verdicts["relative"][0].mean() < 0.3


def test_absolute_thresholds_are_the_number_given() -> None:
    config = CalibrationSettings(mode="absolute", absolute=-2.5)
    assert calibrate(model(), LOG, config, key=jax.random.key(0)).values.tolist() == [-2.5] * 3


def test_a_conformal_threshold_is_one_of_the_lowest_energies() -> None:
    config = CalibrationSettings(mode="conformal", quantile=0.9, samples=3, rows=25)
    key = jax.random.key(0)
    found = np.asarray(calibrate(model(), LOG, config, key=key).values)
    energies = held_out_energies(model(), LOG, config, key=jax.random.split(key)[1])
    lowest = np.asarray(energies).reshape(3, 25, 3).min(axis=2)
    # ⌈26 · 0.9⌉ = 24: one of 25 is above.
    np.testing.assert_allclose(found, np.sort(lowest, axis=1)[:, 23], rtol=1e-5)


def test_a_conformal_threshold_keeps_its_promise_from_few_rows() -> None:
    """Over many calibrations a fresh energy is above δ with the probability 2/26 < 1 − q, however its law."""
    rng = np.random.default_rng(0)
    config = CalibrationSettings(quantile=0.9)
    for law in (rng.normal, rng.standard_cauchy, lambda size: np.exp(3 * rng.normal(size=size))):
        threshold = np.asarray(conformal(jnp.asarray(law(size=(4000, 25)), jnp.float32), config))
        assert (law(size=4000) > threshold).mean() == pytest.approx(2 / 26, abs=0.015)


def test_a_conformal_threshold_needs_rows_enough() -> None:
    with pytest.raises(UserError, match="more than 50"):
        conformal(jnp.zeros((2, 50)), CalibrationSettings(quantile=0.99))


@pytest.mark.parametrize("quantile", [0.0, 1.0, 1.5, float("nan")])
def test_a_senseless_quantile_is_refused(quantile: float) -> None:
    with pytest.raises(UserError, match=r"'CalibrationSettings\.quantile' should be (greater|less) than"):
        CalibrationSettings(quantile=quantile)

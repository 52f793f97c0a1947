"""The objectives as mathematics: invariances, limits, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm.dynamics.contrastive import energy_regulariser, gradient_penalty, info_nce, ranking_nce

energies = st.lists(st.floats(-20, 20, width=32), min_size=2, max_size=21).map(
    lambda x: jnp.array(x, jnp.float32)
)


@given(energies)
@settings(max_examples=50, deadline=None)
def test_info_nce_is_the_negative_log_of_a_softmax(values: jax.Array) -> None:
    weights = np.exp(-np.asarray(values, np.float64))
    assert float(info_nce(values)) == pytest.approx(-np.log(weights[0] / weights.sum()), abs=1e-3)


@given(energies, st.floats(-50, 50))
@settings(max_examples=50, deadline=None)
def test_info_nce_does_not_see_a_common_level(values: jax.Array, level: float) -> None:
    assert float(info_nce(values + level)) == pytest.approx(float(info_nce(values)), abs=1e-3)
    assert abs(float(jax.grad(lambda c: info_nce(values + c))(level))) < 1e-5


def test_ranking_nce_is_info_nce_when_the_proposal_is_uniform() -> None:
    values = jnp.array([0.3, 1.0, -2.0])
    assert float(ranking_nce(values, jnp.full(3, -1.7))) == pytest.approx(float(info_nce(values)), abs=1e-6)


def test_ranking_nce_is_least_at_the_true_energy_whatever_the_proposal() -> None:
    # The truth is a Gaussian of precision 4, and its drawn come from a law not much wider.
    keys = jax.random.split(jax.random.key(0), 2)
    truth = 0.5 * jax.random.normal(keys[0], (20_000, 1))
    drawn = 0.1 + 0.7 * jax.random.normal(keys[1], (20_000, 15))
    candidates = jnp.concatenate([truth, drawn], axis=1)
    log_proposal = -0.5 * ((candidates - 0.1) / 0.7) ** 2

    def loss(precision: float, corrected: bool) -> float:
        values = 0.5 * precision * candidates**2
        rows = jax.vmap(ranking_nce)(values, log_proposal) if corrected else jax.vmap(info_nce)(values)
        return float(rows.mean())

    grid = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0])
    assert grid[np.argmin([loss(p, True) for p in grid])] == 4.0
    # Without the correction the energy learns log(p/q), whose precision is 4 − 1/0.7² ≈ 2.
    assert grid[np.argmin([loss(p, False) for p in grid])] == 2.0


def test_the_penalty_is_zero_below_the_margin_and_grows_above() -> None:
    assert float(gradient_penalty(jnp.array([0.0, 3.0, 5.0]), 5.0)) == 0.0
    assert float(gradient_penalty(jnp.array([0.0, 7.0]), 5.0)) == pytest.approx(2.0)
    assert float(gradient_penalty(jnp.array([0.0, 7.0]), 5.0, "sum")) == pytest.approx(4.0)
    below, above = (jax.grad(lambda n: gradient_penalty(n[None], 5.0))(jnp.asarray(n)) for n in (4.9, 5.5))
    assert float(below) == 0.0
    assert float(above) == pytest.approx(1.0)


def test_the_regulariser_sees_the_level() -> None:
    values = jnp.array([0.0, 1.0, -1.0])
    assert float(energy_regulariser(values)) == pytest.approx(1.0)
    assert float(energy_regulariser(values + 3.0)) > float(energy_regulariser(values))

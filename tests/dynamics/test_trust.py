"""Where a model is trusted: limits from held-out data, for models with energies and without."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import EnergyModel, Samples, TransitionModel, Transitions, TrustRegion, World
from mcetm.dynamics import CalibrationSettings, View
from mcetm.dynamics.trust import held_out_disagreement
from tests.dynamics.test_model import Bowls, gaussian

RNG = np.random.default_rng(0)
ROWS = 1000
LOG = Transitions.from_arrays(
    RNG.normal(size=(ROWS, 2)),
    RNG.normal(size=(ROWS, 1)),
    np.zeros(ROWS),
    RNG.normal(size=(ROWS, 2)),
    np.zeros(ROWS, bool),
    np.ones(ROWS, bool),
)
KEY = jax.random.key(3)
CONFIG = CalibrationSettings(quantile=0.9, samples=2)
FAR, NEAR = jnp.array([50.0]), jnp.array([0.1])


class Parting(TransitionModel):
    """Two members without noise, one on each side; they lie 2 |a| apart."""

    @property
    def num_members(self) -> int:
        return 2

    def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
        moved = jnp.stack([obs.at[0].add(action[0]), obs.at[0].add(-action[0])])
        return Samples(jnp.repeat(moved[:, None], count, axis=1))


class PartingBowls(Bowls):
    """The same disagreement, beside energies that know nothing of it."""

    def means(self, obs: Array, action: Array, *, key: Array) -> Array:
        return jnp.stack([obs.at[0].add(action[0]), obs.at[0].add(-action[0])])


def outside(
    trust: TrustRegion,
    model: TransitionModel,
    action: Array,
    *,
    obs: Array | None = None,
    key: Array = KEY,
    **more: object,
) -> Array:
    obs = jnp.zeros(2) if obs is None else obs
    drawn = model.draw(obs, action, 4, key=key)
    zero = jnp.zeros((), jnp.int32)
    return trust.outside(
        model,
        obs,
        action,
        drawn,
        ("per-sample",),
        selected=(zero, zero),
        key=key,
        **more,  # pyright: ignore[reportArgumentType]
    )[0]


@pytest.mark.parametrize("quantile", [0.8, 0.99])
@pytest.mark.parametrize("make", [Parting, PartingBowls, gaussian])
def test_the_share_of_held_out_pairs_outside_is_one_minus_the_quantile(make: type, quantile: float) -> None:
    model = make()
    trust = TrustRegion.of(model, LOG, CalibrationSettings(quantile=quantile, samples=1), key=KEY)
    apart = np.asarray(model.disagreement(LOG.obs, LOG.action))
    assert np.mean(apart > float(trust.pair_limit)) == pytest.approx(1 - quantile, abs=1.5 / ROWS)


def test_fresh_pairs_of_the_same_kind_are_outside_as_often() -> None:
    first, second = LOG.split(0.5)
    trust = TrustRegion.of(Parting(), first, CONFIG, key=KEY)
    apart = np.asarray(Parting().disagreement(second.obs, second.action))
    assert np.mean(apart > float(trust.pair_limit)) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 500))


def test_no_more_rows_are_measured_than_the_settings_say() -> None:
    config = CalibrationSettings(rows=30, batch_size=7)
    found = held_out_disagreement(Parting(), LOG, config, key=KEY)
    assert found.shape == (30,)
    everywhere = 2 * np.abs(LOG.action[:, 0])
    assert np.isin(np.round(np.asarray(found), 4), np.round(everywhere, 4)).all()


def test_a_model_without_energies_is_tested_by_its_disagreement() -> None:
    trust = TrustRegion.of(Parting(), LOG, CONFIG, key=KEY)
    assert trust.next_state is None
    assert float(trust.pair_limit) == pytest.approx(2 * np.quantile(np.abs(LOG.action), 0.9), rel=1e-4)
    for tested in ("next-state", "pair"):
        assert outside(trust, Parting(), FAR, tested=tested).all(), "wild disagreement"
        assert not outside(trust, Parting(), NEAR, tested=tested).any()
    assert not outside(trust, Parting(), FAR, tested="nothing").any()


def test_next_states_of_a_model_with_energies_are_tested_by_their_energy() -> None:
    model = PartingBowls()
    trust = TrustRegion.of(model, LOG, CONFIG, key=KEY)
    assert trust.next_state is not None
    # ½ ‖s' − s‖² of a standard normal in the plane is exponential; member 1 lies 1 higher.
    np.testing.assert_allclose(trust.next_state.values, -np.log(0.1) + np.arange(2), atol=0.25)
    keys = jax.random.split(jax.random.key(9), 2000)
    found = jax.vmap(lambda k: outside(trust, model, NEAR, key=k))(keys)
    np.testing.assert_allclose(found.mean(axis=(0, 2)), 0.1, atol=0.03)
    # Its energies do not know that members disagree: that is the other question.
    assert not outside(trust, model, FAR, tested="next-state").all()
    assert outside(trust, model, FAR, tested="pair").all()
    assert not outside(trust, model, NEAR, tested="pair").any()


def test_the_limit_of_pairs_does_not_depend_on_how_energies_are_calibrated() -> None:
    model: EnergyModel = PartingBowls()
    limits = {
        float(TrustRegion.of(model, LOG, CalibrationSettings(mode=mode, quantile=0.9), key=KEY).pair_limit)
        for mode in ("quantile", "absolute", "relative", "conformal")
    }
    assert len(limits) == 1


@pytest.mark.parametrize("make", [Parting, PartingBowls])
def test_a_world_stops_where_its_model_is_not_trusted(make: type) -> None:
    model = make()
    world = World(model, lambda o, a, s: s[0], trust=TrustRegion.of(model, LOG, CONFIG, key=KEY))
    view = View(samples=3, tested="pair")
    far, near = (world.imagine(jnp.zeros(2), action, view, key=KEY) for action in (FAR, NEAR))
    assert bool(far.truncated)
    assert bool(far.distrusted.all())
    assert not bool(near.truncated)
    assert not bool(near.distrusted.any())
    trusting = View(samples=3, tested="nothing")
    assert not bool(world.imagine(jnp.zeros(2), FAR, trusting, key=KEY).truncated)
    unlimited = World(model, lambda o, a, s: s[0])
    assert not bool(unlimited.imagine(jnp.zeros(2), FAR, view, key=KEY).truncated)

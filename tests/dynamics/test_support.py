"""What energies take for an (s, a) alone: doubt among anchors, and distance from the log."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Statistics, Transitions
from mcetm.dynamics import REFINE, EnergyTransitionModel, Space, SupportSettings, fit_support
from mcetm.dynamics.energy import AnchoredEnergy, PlainEnergy
from mcetm.dynamics.gaussian import Gaussian, GaussianEnsemble
from mcetm.dynamics.support import Support, moved, pinned
from mcetm.evaluation.detection import auroc


def line_log(rows: int) -> Transitions:
    """States on a line of the plane, actions that follow from them: most of (s, a) is empty."""
    rng = np.random.default_rng(0)
    along = rng.normal(size=(rows, 1))
    obs = np.concatenate([along, 2.0 * along], axis=1) + 0.01 * rng.normal(size=(rows, 2))
    action = np.tanh(along) + 0.01 * rng.normal(size=(rows, 1))
    following = obs + action * [1.0, 2.0]
    return Transitions.from_arrays(
        obs, action, np.zeros(rows), following, np.zeros(rows, bool), np.arange(rows) % 10 == 9
    )


LOG = line_log(2000)
STATISTICS = Statistics.of(LOG)
OBS, ACTION = jnp.asarray(LOG.obs[5]), jnp.asarray(LOG.action[5])
SMALL = SupportSettings(width=32, depth=2, batch_size=256, steps=1000)


def anchored(count: int) -> AnchoredEnergy:
    """With corrections U that have learned something, each a level of its own."""

    def member(key: jax.Array) -> AnchoredEnergy:
        anchor = Gaussian(GaussianEnsemble(width=8, depth=1), STATISTICS, key=key)
        energy = AnchoredEnergy(anchor, width=8, depth=1, key=key)
        end = (energy.network.layers[-1].weight, energy.network.layers[-1].bias)
        learned = tuple(jax.random.normal(jax.random.fold_in(key, i), x.shape) for i, x in enumerate(end))
        place = lambda e: (e.network.layers[-1].weight, e.network.layers[-1].bias)  # noqa: E731
        return eqx.tree_at(place, energy, learned)

    return eqx.filter_jit(eqx.filter_vmap(member))(jax.random.split(jax.random.key(0), count))


@pytest.fixture(scope="module")
def support() -> Support:
    train, holdout = LOG.split(0.2)
    return fit_support(train, holdout, SMALL, key=jax.random.key(0))[0]


@eqx.filter_jit
def at_means(members: AnchoredEnergy, obs: jax.Array) -> tuple[jax.Array, ...]:
    means, stds = eqx.filter_vmap(lambda anchor: anchor.predict(obs, ACTION))(members.anchor)
    energies = eqx.filter_vmap(lambda member, mean: member(obs, ACTION, mean))(members, means)
    return means, stds, energies, energies + pinned(members, obs, ACTION)


@pytest.mark.parametrize("count", [1, 4])
def test_a_pinned_energy_is_the_expected_error_at_its_anchors_mean(count: int) -> None:
    far = jnp.array([100.0, -100.0])  # where untrained anchors do not agree
    found = (np.asarray(part, np.float64) for part in at_means(anchored(count), far))
    means, stds, energies, levels = found
    apart = means.var(axis=0, ddof=1) if count > 1 else 0.0
    expected = np.sqrt(((stds**2 + apart) / np.asarray(STATISTICS.change.std) ** 2).mean(axis=1))
    np.testing.assert_allclose(levels, len(far) * np.log(expected), atol=1e-3)
    assert np.abs(energies - levels).min() > 0.1


def test_energies_without_anchors_are_not_pinned() -> None:
    make = eqx.filter_jit(
        eqx.filter_vmap(lambda key: PlainEnergy(STATISTICS, Space.of(LOG), width=8, depth=1, key=key))
    )
    plain = make(jax.random.split(jax.random.key(0), 3))
    np.testing.assert_array_equal(pinned(plain, OBS, ACTION), np.zeros(3))


def test_a_moved_pair_keeps_its_state_or_its_action_or_neither() -> None:
    keys = jax.random.split(jax.random.key(0), 3000)
    config = SupportSettings(smallest=0.1, largest=0.5)
    found = np.asarray(jax.vmap(lambda k: moved(jnp.zeros(50), 40, config, key=k))(keys))
    state, action = found[:, :40], found[:, 40:]
    still = [(part == 0.0).all(axis=1) for part in (state, action)]
    assert still[0].mean() == pytest.approx(1 / 3, abs=0.04)
    assert still[1].mean() == pytest.approx(1 / 3, abs=0.04)
    assert not (still[0] & still[1]).any()
    sizes = state[~still[0]].std(axis=1)
    assert 0.05 < sizes.min() < 0.13 < 0.4 < sizes.max() < 0.75
    # Evenly by the logarithm: half of them below the geometric mean.
    assert np.median(sizes) == pytest.approx(np.sqrt(0.1 * 0.5), rel=0.1)


def test_support_tells_pairs_of_the_log_from_others(support: Support) -> None:
    known = LOG.split(0.2)[1]
    v = jax.jit(jax.vmap(support))
    on = np.asarray(v(jnp.asarray(known.obs), jnp.asarray(known.action)))
    # Off the line, by an action of another row, and far away: none of them a kind that it was trained with.
    crossed = np.stack([known.obs[:, 0], -known.obs[:, 1]], axis=1)
    far = known.obs + np.array([30.0, 0.0])
    for obs, action, least in (
        (crossed, known.action, 0.85),
        (known.obs, np.roll(known.action, 7, axis=0), 0.8),
        (far, known.action, 0.99),
    ):
        assert auroc(on, np.asarray(v(jnp.asarray(obs, jnp.float32), jnp.asarray(action)))) > least
    farthest = np.asarray(v(jnp.asarray(1e3 * far, jnp.float32), jnp.asarray(known.action)))
    assert np.abs(farthest).max() <= SMALL.weight * SMALL.most


@eqx.filter_jit
def asked(model: EnergyTransitionModel) -> tuple[jax.Array, ...]:
    key = jax.random.key(1)
    drawn = model.samples(OBS, ACTION, 4, key=key)
    assert drawn.energy is not None
    predicted, lowest = model.predict(OBS, ACTION, key=key), model.minimum(OBS, ACTION, key=key)
    return drawn.next_obs, predicted, drawn.energy, model.energy(OBS, ACTION, OBS), lowest


def test_the_expected_error_is_the_total_spread_of_the_anchors_wherever_they_are(support: Support) -> None:
    members = anchored(4)
    model = EnergyTransitionModel(members, Space.of(LOG), config=REFINE, support=support)
    means, stds, *_ = (np.asarray(part, np.float64) for part in at_means(members, OBS))
    total = (stds**2 + means.var(axis=0, ddof=1)) / np.asarray(STATISTICS.change.std) ** 2
    found = float(model.expected_error(OBS, ACTION, key=jax.random.key(0)))
    assert found == pytest.approx(np.exp(np.log(np.sqrt(total.mean(axis=1))).mean()), rel=1e-3)


def test_chains_do_not_feel_it_and_energies_do(support: Support) -> None:
    chain = replace(REFINE.ambient, steps=3)
    bare = EnergyTransitionModel(anchored(3), Space.of(LOG), config=replace(REFINE, ambient=chain))
    without, found = asked(bare), asked(replace(bare, support=support))
    np.testing.assert_allclose(found[0], without[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], without[1], rtol=1e-5)
    offset = np.asarray(jax.jit(lambda: pinned(bare.members, OBS, ACTION) + support(OBS, ACTION))())
    np.testing.assert_allclose(found[2] - without[2], np.tile(offset[:, None], 4), atol=1e-4)
    np.testing.assert_allclose(found[3] - without[3], offset, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[4] - without[4], offset, rtol=1e-3, atol=1e-3)

"""Where negatives come from: bounded chains, known densities, other rows, and the space they live in."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm.data.transitions import Transitions
from mcetm.dynamics.energy import Conditional, Energy
from mcetm.dynamics.etm import (
    PAPER,
    PAPER_EMPO,
    STANDARD,
    EnergySettings,
)
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings
from mcetm.dynamics.negatives import ManifoldNegatives, NoiseNegatives, ProposalNegatives, Row, other_rows
from mcetm.dynamics.space import Space, Variable
from mcetm.training.batches import Batch
from tests.dynamics.test_energy import GAUSSIAN, LOG, ROW, SEEN, SPACE, plain


class Flat(Energy):
    """Every state alike."""

    def __call__(self, obs: jax.Array, action: jax.Array, next_obs: jax.Array) -> jax.Array:
        return 0.0 * next_obs.sum()


def at(energy: Energy) -> Conditional:
    return Conditional(energy, SPACE, ROW.obs, ROW.action)


@given(
    sigma=st.floats(0.01, 1.0),
    recovery=st.sampled_from([0.0, 1e-4, 1.0, 100.0]),
    preset=st.sampled_from([PAPER, PAPER_EMPO]),
    seed=st.integers(0, 20),
)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_manifold_chains_stay_bounded(
    sigma: float, recovery: float, preset: EnergySettings, seed: int
) -> None:
    autoencoder = Autoencoder(
        AutoencoderSettings(latent_dim=2, width=16), SPACE.scale, key=jax.random.key(seed)
    )
    box = SPACE.box
    negatives = ManifoldNegatives(
        autoencoder, SPACE, preset.latent, preset.ambient, (sigma, sigma), recovery=recovery
    )
    energy = at(plain(seed))
    drawn = jax.jit(lambda key: negatives(energy, SEEN, 8, key=key))(jax.random.key(seed))
    assert bool(jnp.isfinite(drawn).all())
    assert bool(((drawn >= box.low) & (drawn <= box.high)).all())


def test_decoded_differences_start_from_the_truth() -> None:
    """With a tiny perturbation and a flat energy `difference` stays at the truth, plain decoding does not."""
    autoencoder = Autoencoder(AutoencoderSettings(latent_dim=2, width=16), SPACE.scale, key=jax.random.key(0))
    still = Langevin(steps=1, first=1e-9, last=1e-9, noise=0.0)
    flat = at(Flat())
    for difference in (True, False):
        negatives = ManifoldNegatives(
            autoencoder, SPACE, still, still, (1e-5, 1e-5), recovery=0.0, difference=difference
        )
        distance = float(jnp.abs(negatives(flat, SEEN, 4, key=jax.random.key(0)) - SEEN.positive).max())
        assert (distance < 1e-3) == difference


def test_a_proposals_log_density_is_that_of_its_draws() -> None:
    negatives = ProposalNegatives(GAUSSIAN, SPACE, (1.0, 3.0))
    draws = negatives(at(Flat()), SEEN, 20_000, key=jax.random.key(0))
    mean, std = negatives.mean_and_std(SEEN)
    # Importance weights of a unit-width Gaussian against the mixture must average to 1.
    log_p = (-0.5 * ((draws - mean) / std) ** 2 - jnp.log(std) - 0.5 * jnp.log(2 * jnp.pi)).sum(axis=1)
    weights = jnp.exp(log_p - negatives.log_density(SEEN, draws))
    assert float(weights.mean()) == pytest.approx(1.0, abs=0.05)


def test_other_rows_are_never_the_row_itself() -> None:
    positives = jnp.arange(8.0)[:, None]
    for index in (0, 7):
        drawn = other_rows(positives, jnp.asarray(index), 500, key=jax.random.key(index))
        assert sorted(set(drawn.ravel().tolist())) == [float(i) for i in range(8) if i != index]


def test_log_uniform_perturbations_have_every_scale_alike() -> None:
    negatives = ManifoldNegatives(
        Autoencoder(AutoencoderSettings(latent_dim=2, width=8), SPACE.scale, key=jax.random.key(0)),
        SPACE, Langevin(steps=1), Langevin(steps=1), (1e-3, 1.0), "log-uniform",
    )  # fmt: skip
    drawn = jax.vmap(negatives._draw_sigma)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(
        np.histogram(np.log10(drawn), bins=3, range=(-3, 0))[0] / 4000, 1 / 3, atol=0.04
    )


@pytest.mark.parametrize("variable", ["next_obs", "change", "boxed"])
def test_a_space_is_left_as_it_was_entered(variable: Variable) -> None:
    space = Space.of(LOG, variable)
    inside = jax.vmap(space.encode)(Batch.of(LOG).obs, Batch.of(LOG).next_obs)
    assert bool(((inside >= space.box.low) & (inside <= space.box.high)).all())
    if variable == "change":
        np.testing.assert_allclose(inside.std(axis=0), 1.0, rtol=1e-3)
    if variable == "boxed":
        np.testing.assert_allclose(np.abs(inside).max(axis=0), 1.0, rtol=1e-5)
        np.testing.assert_allclose(space.box.high, 1.1, rtol=1e-6)
    back = jax.vmap(space.decode)(Batch.of(LOG).obs, inside)
    np.testing.assert_allclose(back, LOG.next_obs, atol=1e-5)


def test_standard_chains_come_to_the_data_where_changes_have_long_tails() -> None:
    """As steep as the gradient penalty allows, from anywhere in the box: else every negative is an easy one.

    In units of their spread the box of heavy-tailed changes is wider than chains are long.
    """
    rng = np.random.default_rng(0)
    change = rng.standard_t(3, size=(2000, 17))
    obs, zeros = rng.normal(size=(2000, 17)), np.zeros(2000)
    log = Transitions.from_arrays(obs, zeros[:, None], zeros, obs + change, zeros.astype(bool), zeros == 0.0)

    def distance(variable: Variable) -> float:
        space = Space.of(log, variable)
        row = jax.tree_util.tree_map(lambda x: x[0], Batch.of(log))
        truth = space.encode(row.obs, row.next_obs)

        class Steep(Energy):
            def __call__(self, obs: jax.Array, action: jax.Array, next_obs: jax.Array) -> jax.Array:
                return STANDARD.margin * jnp.linalg.norm(space.encode(obs, next_obs) - truth)

        steep = Conditional(Steep(), space, row.obs, row.action)
        seen = Row(row.obs, row.action, truth)
        negatives = NoiseNegatives(space, STANDARD.ambient)
        drawn = jax.jit(lambda key: negatives(steep, seen, 32, key=key))(jax.random.key(0))
        return float(jnp.abs(drawn - truth).max())

    assert distance(STANDARD.variable) < 0.1
    assert distance("change") > 1.0


def test_what_never_changes_stays_in_the_box() -> None:
    still = replace(LOG, next_obs=np.concatenate([LOG.obs[:, :1], LOG.next_obs[:, 1:]], axis=1))
    box = Space.of(still, "boxed").box
    assert float(box.high[0]) < 1e-5
    np.testing.assert_allclose(box.high[1:], 1.1, rtol=1e-6)

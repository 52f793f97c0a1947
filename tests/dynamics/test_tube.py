"""The tube around the manifold: what is near the data stays as it is, what is not comes back to its edge."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.data.transitions import Transitions
from mcetm.dynamics import AutoencoderSettings, Tube, fit_autoencoder
from mcetm.errors import UserError


def line(rows: int, seed: int) -> Transitions:
    """States near a line in three dimensions."""
    rng = np.random.default_rng(seed)
    along = rng.uniform(-1.0, 1.0, (rows + 1, 1))
    states = (along * np.array([1.0, 2.0, -1.0]) + 0.02 * rng.normal(size=(rows + 1, 3))).astype(np.float32)
    ends = np.arange(rows) % 50 == 49
    return Transitions.from_arrays(states[:-1], next_obs=states[1:], terminated=ends & False, truncated=ends)


@pytest.fixture(scope="module")
def tube() -> Tube:
    settings = AutoencoderSettings(latent_dim=1, width=16, depth=2, steps=800, batch_size=128)
    autoencoder, _ = fit_autoencoder(line(2000, 0), settings, key=jax.random.key(0))
    return Tube.of(autoencoder, line(1000, 1), quantile=0.9)


def test_the_tube_holds_its_share_of_the_log_and_leaves_it_alone(tube: Tube) -> None:
    states = jnp.asarray(line(1000, 1).next_obs)
    distance = jax.vmap(tube.distance)(states)
    inside = distance <= tube.radius
    assert float(inside.mean()) == pytest.approx(0.9, abs=0.002)
    np.testing.assert_array_equal(jax.vmap(tube)(states)[inside], states[inside])


def test_what_is_outside_comes_to_the_edge_on_the_way_to_its_decoded_self(tube: Tube) -> None:
    state = jnp.array([1.0, -1.0, 1.0])
    assert tube.distance(state) > 5.0 * tube.radius
    decoded = tube.autoencoder.decode(tube.autoencoder.encode(state))
    moved = tube(state)
    spread = tube.autoencoder.state_scale.std
    away = jnp.sqrt((((moved - decoded) / spread) ** 2).mean())
    assert away == pytest.approx(float(tube.radius), rel=1e-4)
    towards = (moved - state) / (decoded - state)
    np.testing.assert_allclose(towards, towards[0], rtol=1e-3)


def test_states_off_the_manifold_come_nearer_to_it(tube: Tube) -> None:
    direction = jnp.array([1.0, 2.0, -1.0]) / jnp.sqrt(6.0)
    off = lambda s: jnp.linalg.norm(s - (s @ direction) * direction)  # noqa: E731
    for state in (jnp.array([1.0, 0.0, 0.5]), jnp.array([-0.5, -1.0, -0.5]), jnp.array([0.0, 1.5, 1.0])):
        moved = tube(state)
        assert off(moved) < 0.4 * off(state)
        assert tube.distance(moved) < tube.distance(state)


def test_a_share_that_is_none_is_refused(tube: Tube) -> None:
    with pytest.raises(UserError, match=r"between 0 and 1, not 1\.5"):
        Tube.of(tube.autoencoder, line(100, 2), quantile=1.5)

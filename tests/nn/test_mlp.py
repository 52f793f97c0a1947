import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.data import Normalizer
from mcetm.nn.mlp import MLP, Initialisation, Linear
from mcetm.nn.scaling import Scaling


def test_it_is_the_composition_it_says_it_is() -> None:
    network = MLP(3, 2, width=5, depth=2, activation="tanh", key=jax.random.key(0))
    x = np.array([0.3, -1.0, 2.0], np.float32)
    hidden = x
    for layer in network.layers[:-1]:
        hidden = np.tanh(np.asarray(layer.weight) @ hidden + np.asarray(layer.bias))
    expected = np.asarray(network.layers[-1].weight) @ hidden + np.asarray(network.layers[-1].bias)
    np.testing.assert_allclose(network(jnp.asarray(x)), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("initialisation", "spread"),
    [
        ("uniform", 1 / 20 / np.sqrt(3)),
        ("truncated-normal", 0.5 / 20 * 0.8796),
        ("small-end", 0.5 / 20 * 0.8796),
        ("orthogonal", np.sqrt(2) / 20),
    ],
)
def test_initial_spreads(initialisation: Initialisation, spread: float) -> None:
    layer = Linear(400, 300, initialisation=initialisation, key=jax.random.key(0))
    assert np.std(layer.weight) == pytest.approx(spread, rel=0.02)
    if initialisation != "uniform":
        np.testing.assert_allclose(layer.bias, 0.1 if initialisation == "small-end" else 0.0)
    if initialisation == "orthogonal":
        np.testing.assert_allclose(layer.weight @ layer.weight.T, 2 * np.eye(300), atol=1e-4)


def test_a_small_end_is_small_at_the_end_only() -> None:
    network = MLP(3, 2, width=50, depth=1, initialisation="small-end", key=jax.random.key(0))
    assert np.abs(network.layers[1].weight).max() <= 3e-3
    assert np.abs(network.layers[1].bias).max() <= 3e-3
    assert np.abs(network.layers[0].weight).max() > 0.1


def test_a_network_of_depth_0_is_linear() -> None:
    network = MLP(3, 2, width=9, depth=0, key=jax.random.key(0))
    a, b = jnp.arange(3.0), jnp.ones(3)
    np.testing.assert_allclose(network(a + b) - network(b), network(a) - network(0 * a), atol=1e-6)


def test_scales_are_never_trained() -> None:
    scaling = Scaling.of(Normalizer.of(np.random.default_rng(0).normal(3, 2, (100, 2)).astype(np.float32)))
    x = jnp.array([1.0, 2.0])
    gradient = jax.grad(lambda s: (s.denormalize(s.normalize(x) ** 2) ** 2).sum())(scaling)
    assert not np.any(gradient.mean)
    assert not np.any(gradient.std)
    np.testing.assert_allclose(scaling.denormalize(scaling.normalize(x)), x, rtol=1e-5)

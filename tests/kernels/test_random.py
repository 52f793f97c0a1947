"""Threefry is Threefry, and its normals are normal and independent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.kernels.random import normal, threefry

ZERO, ONES, PI = (0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0x243F6A88, 0x85A308D3)


def _words(pair: tuple[int, int]) -> tuple[jax.Array, jax.Array]:
    return jnp.uint32(pair[0]), jnp.uint32(pair[1])


@pytest.mark.parametrize(
    ("rounds", "key", "counter", "expected"),
    [
        (13, ZERO, ZERO, (0x9D1C5EC6, 0x8BD50731)),
        (20, ZERO, ZERO, (0x6B200159, 0x99BA4EFE)),
        (20, ONES, ONES, (0x1CB996FC, 0xBB002BE7)),
        (20, (0x13198A2E, 0x03707344), PI, (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers_of_random123(rounds: int, key: tuple, counter: tuple, expected: tuple) -> None:
    assert tuple(int(word) for word in threefry(_words(key), _words(counter), rounds)) == expected


def _normals(steps: int = 8, chains: int = 4096) -> np.ndarray:
    """Two normals for each step and chain, counted as the kernels count."""
    step, chain = jnp.meshgrid(jnp.arange(steps), jnp.arange(chains), indexing="ij")
    words = threefry(_words((1, 2)), (chain.astype(jnp.uint32), step.astype(jnp.uint32) * jnp.uint32(32)))
    return np.stack([np.asarray(normal(word), np.float64) for word in words])


def test_moments_are_those_of_a_standard_normal() -> None:
    w = _normals().ravel()
    count = len(w)
    # In standard errors of each moment's estimate.
    assert abs(w.mean()) * np.sqrt(count) < 4
    assert abs((w**2).mean() - 1) * np.sqrt(count / 2) < 4
    assert abs((w**3).mean()) * np.sqrt(count / 15) < 4
    assert abs((w**4).mean() - 3) * np.sqrt(count / 96) < 4


def test_words_steps_and_neighbouring_chains_are_uncorrelated() -> None:
    w = _normals()
    pairs = [(w[0], w[1]), (w[:, 1:], w[:, :-1]), (w[:, :, 1:], w[:, :, :-1])]
    for a, b in pairs:
        for f in (lambda x: x, lambda x: x**2 - 1):
            together = (f(a) * f(b)).ravel()
            assert abs(together.mean()) / (together.std() / np.sqrt(together.size)) < 4


def test_the_tails_reach_where_they_should() -> None:
    extremes = jnp.array([0, 2**32 - 1, 2**31], jnp.uint32)
    low, high, middle = (float(value) for value in normal(extremes))
    assert low == pytest.approx(-5.295, abs=0.005)
    assert high == pytest.approx(5.295, abs=0.005)
    assert abs(middle) < 1e-6

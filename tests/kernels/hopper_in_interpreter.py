"""The kernel for Hopper GPUs against the reference, in Pallas' interpreter with its threads and barriers.

Run by test_hopper.py in a process of its own.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.kernels import chains
from mcetm.kernels.chains import Activation, Chains, Moves
from mcetm.kernels.hopper_plan import Tuning
from tests.kernels.problems import MOVES, problem, pulled, recovering

hopper = pytest.importorskip("mcetm.kernels.hopper")
interpreter = pytest.importorskip("jax._src.pallas.mosaic_gpu.interpret.params")


def _samples(problem: Chains, moves: Moves, *seeds: int, **settings: Any) -> list[np.ndarray]:
    tuning = Tuning(interpret=interpreter.InterpretGPUParams(), **settings)
    run = jax.jit(lambda p, k: hopper.sample(p, moves, tuning, key=k))
    return [np.asarray(run(problem, jax.random.key(seed))) for seed in seeds]


def _sample(problem: Chains, moves: Moves, **settings: Any) -> np.ndarray:
    return _samples(problem, moves, 0, **settings)[0]


@pytest.mark.parametrize("kind", ["plain", "latent"])
def test_without_noise_chains_go_where_the_reference_goes(kind: str) -> None:
    still = problem(kind, members=2)
    expected = chains.sample(still, MOVES, key=jax.random.key(0))
    travelled = float(jnp.abs(expected - still.start).mean())
    # Operands have eleven bits; next to a kink of a ReLU even that can turn a unit on or off.
    assert np.abs(_sample(still, MOVES) - expected).mean() < 0.02 * travelled


@pytest.mark.parametrize("kind", ["anchored", "latent"])
def test_a_pull_leads_where_it_leads_the_reference(kind: str) -> None:
    still = pulled(problem(kind, members=2))
    expected = chains.sample(still, MOVES, key=jax.random.key(0))
    travelled = float(jnp.abs(expected - still.start).mean())
    assert np.abs(_sample(still, MOVES) - expected).mean() < 0.02 * travelled


@pytest.mark.parametrize(("kind", "activation"), [("plain", "relu"), ("anchored", "silu")])
def test_a_recovery_term_leads_where_it_leads_the_reference(kind: str, activation: Activation) -> None:
    still = recovering(problem(kind, members=2), activation)
    expected = chains.sample(still, MOVES, key=jax.random.key(0))
    without = chains.sample(problem(kind, members=2), MOVES, key=jax.random.key(0))
    changed = float(jnp.abs(expected - without).mean())
    assert np.abs(_sample(still, MOVES) - expected).mean() < 0.02 * changed


def test_bfloat16_operands_and_a_ring_of_few_slots_differ_in_rounding_only() -> None:
    still = problem("anchored", members=2)
    expected, reference = _sample(still, MOVES), chains.sample(still, MOVES, key=jax.random.key(0))
    assert np.abs(expected - reference).mean() < 0.02 * float(jnp.abs(reference - still.start).mean())
    other = _sample(still, MOVES, operands="bfloat16", slots=2, slice_rows=48)
    assert 0.0 < np.abs(other - expected).max() < 0.01


def test_the_conventions_differ_as_they_should() -> None:
    moves = Moves((0.3,), "empo", gradient_clip=0.5, move_clip=None)
    still = problem("plain")
    expected = chains.sample(still, moves, key=jax.random.key(0))
    np.testing.assert_allclose(_sample(still, moves), expected, atol=2e-3)


def test_with_noise_means_and_spreads_are_those_of_the_reference() -> None:
    one: Any = problem("anchored", rows=1, samples=1)
    rows = 64
    noisy = eqx.tree_at(
        lambda p: (p.start, p.context, p.preconditioner, p.anchor.mean, p.anchor.spread, p.noise),
        one,
        (
            jnp.broadcast_to(one.start, (1, rows, 4, 4)),
            *[
                jnp.repeat(a, rows, axis=1)
                for a in (one.context, one.preconditioner, one.anchor.mean, one.anchor.spread)
            ],
            jnp.array([1.0, 1.0, 1.0, 0.5]),
        ),
    )
    ours = _sample(noisy, MOVES)
    many = eqx.tree_at(
        lambda p: (p.start, p.context, p.preconditioner, p.anchor.mean, p.anchor.spread),
        noisy,
        tuple(
            jnp.repeat(a, 16, axis=1)
            for a in (
                noisy.start,
                noisy.context,
                noisy.preconditioner,
                noisy.anchor.mean,
                noisy.anchor.spread,
            )
        ),
    )
    reference = np.asarray(chains.sample(many, MOVES, key=jax.random.key(1)))
    for samples in (slice(0, 3), slice(3, 4)):
        a, b = (x[0, :, samples].reshape(-1, 4) for x in (ours, reference))
        error = a.std(axis=0) / np.sqrt(len(a))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 4 * error).all()
        assert (np.abs(a.std(axis=0) / b.std(axis=0) - 1) < 4 / np.sqrt(2 * len(a))).all()


def test_members_and_calls_have_noise_of_their_own() -> None:
    noisy = problem("plain", members=2, noise=1.0)
    flat = eqx.tree_at(lambda p: (p.last, p.start, p.box), noisy, (0 * noisy.last, 0 * noisy.start, None))
    free = Moves((0.1, 0.05), "paper", gradient_clip=None, move_clip=None)
    ours, other = _samples(flat, free, 0, 1)
    assert len(np.unique(np.concatenate([ours.ravel(), other.ravel()]))) == 2 * ours.size

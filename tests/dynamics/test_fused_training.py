"""Negatives whose chains a kernel runs: the same as on the plain path, and one call for all of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm.dynamics import fused
from mcetm.dynamics.energy import AnchoredEnergy, Conditional, Energy, PlainEnergy
from mcetm.dynamics.etm import EnergySettings, fit_energy
from mcetm.dynamics.langevin import Convention, Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings
from mcetm.dynamics.negatives import ManifoldNegatives, Negatives, NoiseNegatives, Row
from mcetm.dynamics.space import Space
from mcetm.kernels import chains
from mcetm.kernels.hopper_plan import Tuning
from mcetm.nn.members import take_members
from mcetm.training.batches import Batch
from tests.dynamics.test_energy import GAUSSIAN, LOG, STATISTICS

STILL = Langevin(steps=4, first=0.3, last=0.1, noise=0.0)
SPACE = Space.of(LOG, "change")
ROWS = jax.tree.map(lambda leaf: leaf[:3], Batch.of(LOG))
AUTOENCODER = eqx.tree_at(
    lambda a: a.code_scale.std,
    Autoencoder(
        AutoencoderSettings(latent_dim=2, width=16, depth=2), GAUSSIAN.inputs.obs, key=jax.random.key(0)
    ),
    jnp.array([0.5, 2.0]),
)
MANIFOLD = ManifoldNegatives(AUTOENCODER, SPACE, STILL, STILL)


def _members(kind: str = "plain", width: int = 8) -> Any:
    """Two energies, steep enough that chains get somewhere."""

    def make(key: jax.Array) -> Energy:
        if kind == "anchored":
            made = AnchoredEnergy(GAUSSIAN, width=width, depth=2, key=key)
            last = lambda e: e.network.layers[-1].weight  # noqa: E731
            return eqx.tree_at(last, made, jax.random.normal(key, last(made).shape))
        made = PlainEnergy(STATISTICS, SPACE, width=width, depth=2, activation="silu", key=key)
        return eqx.tree_at(lambda e: e.network.layers[-1].weight, made, replace_fn=lambda w: 20.0 * w)

    return eqx.filter_vmap(make)(jax.random.split(jax.random.key(1), 2))


def _row(row: Batch) -> Row:
    return Row(row.obs, row.action, SPACE.encode(row.obs, row.next_obs))


def _negatives(members: Any, negatives: Negatives, count: int = 4, seed: int = 0) -> np.ndarray:
    """Of two members and three rows, as training draws them: members outside, rows inside."""

    def of_member(energy: Energy, key: jax.Array) -> jax.Array:
        def of_row(row: Batch, key: jax.Array) -> jax.Array:
            at = Conditional(energy, SPACE, row.obs, row.action)
            return negatives(at, _row(row), count, key=key)

        return jax.vmap(of_row)(ROWS, jax.random.split(key, 3))

    keys = jax.random.split(jax.random.key(seed), 2)
    drawn = np.asarray(eqx.filter_jit(eqx.filter_vmap(of_member))(members, keys))
    jax.effects_barrier()  # until calls are counted
    return drawn


def fused_(negatives: Any) -> Any:
    """The same negatives, with the chains in a kernel."""
    return replace(negatives, sampler=fused.FUSED)


class Recorder:
    """The reference in the place of a kernel; it knows what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problems: list[chains.Chains] = []
        self.calls = 0
        monkeypatch.setattr(fused, "kernel", lambda *_, **__: self)

    def __call__(self, problem: chains.Chains, moves: chains.Moves, *, key: jax.Array) -> jax.Array:
        self.problems.append(problem)
        jax.debug.callback(self.count)
        return chains.sample(problem, moves, key=key)

    def count(self) -> None:
        self.calls += 1


CASES = {
    "uniform starts": ("plain", NoiseNegatives(SPACE, STILL)),
    "Gaussian starts, anchored": ("anchored", NoiseNegatives(SPACE, STILL, "gaussian")),
    "manifold": ("plain", MANIFOLD),
    "decoded differences, soft springs": ("plain", replace(MANIFOLD, difference=True, sigma=(0.5, 1.0))),
    "manifold, no recovery": ("plain", replace(MANIFOLD, recovery=0.0)),
    "manifold, anchored": ("anchored", MANIFOLD),
}


@pytest.mark.parametrize("case", CASES)
def test_without_noise_negatives_are_the_plain_ones(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, negatives = CASES[case]
    members = _members(kind)
    expected = _negatives(members, negatives)
    recorder = Recorder(monkeypatch)
    np.testing.assert_allclose(_negatives(members, fused_(negatives)), expected, atol=2e-4)
    latent_too = isinstance(negatives, ManifoldNegatives) and kind == "plain"
    assert recorder.calls == 1 + latent_too, "one call for all members and rows of a stage"
    assert recorder.problems[-1].start.shape[:3] == (2, 3, 4)
    recovers = isinstance(negatives, ManifoldNegatives) and negatives.recovery > 0
    assert (recorder.problems[-1].recovery is not None) == recovers


@pytest.mark.parametrize("convention", ["paper", "empo"])
def test_a_pull_is_integrated_as_the_sampler_does_it(
    convention: Convention, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 1/σ² = 400 and these steps, an explicit step would diverge."""
    stiff = replace(STILL, convention=convention, move_clip=None)
    negatives = replace(MANIFOLD, latent=stiff, sigma=(0.05, 0.3))
    members = _members()
    expected = _negatives(members, negatives)
    recorder = Recorder(monkeypatch)
    np.testing.assert_allclose(_negatives(members, fused_(negatives)), expected, atol=2e-4)
    assert any(problem.pull is not None for problem in recorder.problems)


def test_with_noise_the_law_is_that_of_the_plain_path(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = Langevin(steps=5, first=0.1, last=0.1, convention="paper", noise=1.0, move_clip=None)
    negatives = ManifoldNegatives(AUTOENCODER, SPACE, noisy, noisy, recovery=0.0)
    members = _members()
    theirs = _negatives(members, negatives, 1500, seed=1)
    Recorder(monkeypatch)
    ours = _negatives(members, fused_(negatives), 1500)
    error = np.sqrt((ours.var(axis=2) + theirs.var(axis=2)) / 1500)
    assert (np.abs(ours.mean(axis=2) - theirs.mean(axis=2)) < 4 * error).all()
    assert (np.abs(ours.std(axis=2) / theirs.std(axis=2) - 1) < 0.15).all()
    inside = ours[(ours > np.asarray(SPACE.box.low)) & (ours < np.asarray(SPACE.box.high))]
    assert len(np.unique(inside)) > 0.99 * inside.size, "members, rows and drawn have noise of their own"


def test_a_training_step_of_all_members_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    config = EnergySettings(
        negatives="uniform",
        members=3,
        count=4,
        width=8,
        depth=2,
        batch_size=16,
        steps=2,
        ambient=STILL,
        backend="fused",
    )
    _, history = fit_energy(LOG, config, key=jax.random.key(0), chunk=2)
    jax.effects_barrier()
    assert recorder.problems[-1].start.shape == (3, 16, 4, 5)
    assert recorder.calls == 2
    assert np.isfinite(history[-1]["loss"]).all()


@pytest.mark.parametrize(("stage", "other"), [("latent", "ambient"), ("ambient", "latent")])
def test_the_kernel_itself_runs_a_stage(stage: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other_kernel = f"_{other}_kernel"
    monkeypatch.setattr(fused, other_kernel, lambda *_, **__: None)  # one is enough for an interpreter
    hopper = pytest.importorskip("mcetm.kernels.hopper")
    interpreter = pytest.importorskip("jax._src.pallas.mosaic_gpu.interpret.params")
    tuning = Tuning(interpret=interpreter.InterpretGPUParams())
    negatives = replace(MANIFOLD, **{stage: replace(STILL, steps=2)})
    members = _members(width=72)
    expected = _negatives(members, negatives, 2)
    run = jax.jit(lambda c, m, key: hopper.sample(c, m, tuning, key=key), static_argnums=1)
    monkeypatch.setattr(fused, "kernel", lambda *_, **__: lambda c, m, *, key: run(c, m, key))
    truth = jax.vmap(SPACE.encode)(ROWS.obs, ROWS.next_obs)
    travelled = np.abs(expected - np.asarray(truth)[None, :, None]).mean()
    assert np.abs(_negatives(members, fused_(negatives), 2) - expected).mean() < 0.02 * travelled


@pytest.mark.parametrize("negatives", [NoiseNegatives(SPACE, Langevin(steps=2)), MANIFOLD])
def test_where_no_kernel_serves_the_backend_is_the_plain_one(negatives: Any) -> None:
    """Asked for, but not there: bit for bit the same chains."""
    energy, row = take_members(_members(), 0), jax.tree.map(lambda leaf: leaf[0], ROWS)
    at = Conditional(energy, SPACE, row.obs, row.action)
    draw = lambda of: of(at, _row(row), 3, key=jax.random.key(0))  # noqa: E731
    np.testing.assert_array_equal(draw(fused_(negatives)), draw(negatives))

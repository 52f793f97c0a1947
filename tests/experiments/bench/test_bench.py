"""What a benchmark writes down: figures that follow from times, and rows that failed beside the others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax import Array

from mcetm.agents import SAC
from mcetm.cli import main
from mcetm.dynamics import EnergySettings, fused
from mcetm.kernels import chains
from mcetm.pipeline import make_config
from mcetm_experiments.bench import ceiling, energies, policy, sampling
from mcetm_experiments.bench.clock import Spread, from_history
from mcetm_experiments.bench.sheet import Sheet, Timed
from mcetm_experiments.bench.subjects import random_log


def test_the_spread_is_the_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(3.0, 2.0, 4.0, 5)
    assert Spread.of([2.0]).each(4) == Spread(0.5, 0.5, 0.5, 1)
    lines = [{"seconds": seconds} for seconds in (9.0, 1.0, 2.0, 3.0)]
    assert from_history(lines) == (Spread(2.0, 1.5, 2.5, 3), 7.0)


def test_a_row_that_fails_does_not_stop_the_others() -> None:
    sheet, fine = Sheet("small", 1000.0), Timed(Spread.of([1.0]))
    sheet.row("a", "one", lambda: [][0])
    assert sheet.row("a", "other", lambda: fine) == fine
    assert [row.failure for row in sheet.rows] == ["IndexError: list index out of range", None]


def test_rows_after_the_time_given_are_named_not_measured() -> None:
    sheet = Sheet("small", 0.0)
    for _ in range(2):
        sheet.row("a", "one", lambda: Timed(Spread.of([1.0])))
    assert len(sheet.rows) == 1, "something is measured however short the time"
    assert sheet.not_begun == ["a (one)"]


def test_operations_of_a_chain() -> None:
    # 17 + 6 + 17 → 4 × 200 → 1, forward and back, 60 steps: two operations for each weight.
    assert sampling._flop(200, 4) == 60 * 2 * 2 * (40 * 200 + 3 * 200 * 200 + 200)


def test_results_hold_the_machine_and_every_implementation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def still(model: Array, obs: Array, action: Array, *, key: Array) -> Array:
        return model + jnp.broadcast_to(obs[:, None, None], (len(obs), 5, sampling.COUNT, 17))

    def absent(*_: object, **__: object) -> Array:
        raise NotImplementedError("not on this machine")

    monkeypatch.setattr(sampling, "IMPLEMENTATIONS", {"still": still, "absent": absent})
    monkeypatch.setattr(sampling, "why_no_torch", lambda: "PyTorch is not installed.")
    monkeypatch.setattr(sampling, "energies", lambda *_: jnp.zeros(()))
    monkeypatch.setattr(ceiling, "CPU_SIZE", 32)
    assert main(["bench", "sampling", "--size", "small", "--json", "--record", str(tmp_path / "r.json")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "r.json").read_text())
    assert {"device", "cores", "processor", "versions", "commit"} <= set(found)
    product, ours, failed = found["benchmarks"]["sampling"]["rows"]
    assert failed["failure"] == "NotImplementedError: not on this machine"
    assert "failure" not in ours, ours
    rate = 5 * 64 * sampling.COUNT / ours["seconds"]["median"]
    assert ours["figures"]["next states/s"] == pytest.approx(rate)
    flops = 1e12 * product["figures"]["TFLOP/s"]
    assert ours["figures"]["share of the ceiling"] == pytest.approx(rate * sampling._flop(200, 4) / flops)
    assert "PyTorch is not installed." in found["benchmarks"]["sampling"]["notes"]


def test_the_fused_sampler_is_a_row_where_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def fit_energy(log: Any, config: EnergySettings, **_: Any) -> tuple[None, list[dict[str, float]]]:
        asked.append((config.backend, config.negatives))
        return None, [{"seconds": 1.0}] * 3

    monkeypatch.setattr(energies, "fit_energy", fit_energy)
    monkeypatch.setattr(energies, "why_no_torch", lambda: "PyTorch is not installed.")
    here, there = Sheet("small", 1000.0), Sheet("small", 1000.0)
    energies.run_energies(here)
    assert {row.variant for row in here.rows} == {"plain JAX"}, "there is no such GPU here"
    asked.clear()
    monkeypatch.setattr(fused, "kernel", lambda *_: chains.sample)
    energies.run_energies(there)
    assert [row.failure for row in there.rows] == [None] * 6
    kinds = ("manifold", "uniform", "manifold")
    assert asked == [(backend, kind) for kind in kinds for backend in ("plain", "fused")]


def test_updates_of_all_seeds_count(monkeypatch: pytest.MonkeyPatch) -> None:
    small = policy.PlainSAC(learner=SAC(width=8, batch_size=16))
    config = replace(make_config(), algorithm=small, label=small.label)
    usual = policy._settings
    monkeypatch.setattr(policy, "_settings", lambda a, *r, **m: config if a == "sac" else usual(a, *r, **m))
    monkeypatch.setattr(policy, "why_no_torch", lambda: "PyTorch is not installed.")
    sheet = Sheet("small", 1000.0)
    policy.run_policy(sheet, ["sac"], [1, 2])
    stage, agents = policy.prepare(random_log(2_000), "sac", seeds=2, full=False)
    assert {leaf.shape[0] for leaf in jax.tree_util.tree_leaves(agents) if eqx.is_array(leaf)} == {2}
    for row, seeds in zip(sheet.rows, (1, 2), strict=True):
        assert row.measured is not None, row.failure
        seconds, figures = row.measured.seconds, row.measured.figures
        assert figures["updates/s"] * seconds.median == pytest.approx(stage.chunk)
        assert figures["updates/s in all"] == pytest.approx(seeds * figures["updates/s"])
        assert row.measured.compile_seconds is not None
        assert row.measured.compile_seconds > seconds.median


@pytest.mark.parametrize(("full", "batch", "every"), [(False, 200, 200), (True, 5000, 1000)])
def test_all_algorithms_imagine_as_much(full: bool, batch: int, every: int) -> None:
    for algo in ("mcetm", "mobile", "mopo", "combo", "rambo"):
        algorithm: Any = policy._settings(algo, full, refined=False).algorithm
        generations = 4 if algo == "rambo" else 1
        rollout = algorithm.rollout
        assert (rollout.batch, rollout.horizon, generations * rollout.every) == (batch, 5, every), algo
    assert policy._settings("sac", full, refined=False).algorithm.updates > 0


def test_an_algorithm_with_energies_is_measured_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ours(*_: Any, backend: str, **__: Any) -> Timed:
        asked.append(backend)
        return Timed(Spread(1.0, 1.0, 1.0, 1), None, {})

    monkeypatch.setattr(policy, "_ours", ours)
    monkeypatch.setattr(policy, "why_no_torch", lambda: "PyTorch is not installed.")
    monkeypatch.setattr(fused, "kernel", lambda *_: chains.sample)
    sheet = Sheet("small", 1000.0)
    policy.run_policy(sheet, ["mobile", "mcetm"], [1])
    assert [(row.work, row.variant) for row in sheet.rows] == [
        ("MOBILE, 1 seed", "plain JAX"),
        ("MC-ETM, K = 10, 1 seed", "plain JAX"),
        ("MC-ETM, K = 10, 1 seed", "fused sampler"),
    ]
    assert asked == ["plain", "plain", "fused"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["policy", "--algos", "ppo"], "There is no algorithm 'ppo' to measure"),
        (["policy", "--seeds", "0"], "'Bench.seeds.0' should be greater"),
        (["models", "--seeds", "2"], "--algos and --seeds are for the benchmark policy"),
        (["models", "--seconds", "0"], "'Bench.seconds' should be greater"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    said: Any = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said

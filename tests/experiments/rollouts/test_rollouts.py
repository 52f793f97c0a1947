"""The rollouts study: its windows and measures, and the whole at a small size."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from mcetm import UserError
from mcetm.cli import main
from mcetm.data import Metadata, Transitions
from mcetm_experiments.rollouts import film, study
from mcetm_experiments.rollouts.film import FilmConfig
from mcetm_experiments.rollouts.settings import RolloutsStudy
from mcetm_experiments.rollouts.study import (
    RolloutsConfig,
    curves,
    guarded,
    last_scene,
    run_rollouts,
    some_windows,
)
from mcetm_experiments.shared.baselines import Baselines, FittedBaseline
from mcetm_experiments.shared.locomotion import TASKS, Logs
from mcetm_experiments.shared.openloop import open_loop
from tests.experiments.drawn import words_in
from tests.experiments.subjects import tiny_baselines

LENGTHS = (30, 12, 40, 30, 25)


def hops(lengths: tuple[int, ...] = LENGTHS) -> Transitions:
    """Episodes of a hopper's shape in which every number moves by its own constant."""
    rng, parts = np.random.default_rng(0), []
    for length in lengths:
        path = 0.1 * rng.normal(size=11) + 0.001 * np.arange(length + 1)[:, None] * np.arange(11)
        path[:, 0] += 1.25
        parts.append(path)
    last = np.zeros(sum(lengths), bool)
    last[np.cumsum(lengths) - 1] = True
    return Transitions.from_arrays(
        np.concatenate([path[:-1] for path in parts]),
        rng.uniform(-1, 1, (sum(lengths), 3)),
        np.zeros(sum(lengths)),
        np.concatenate([path[1:] for path in parts]),
        np.zeros(sum(lengths), bool),
        last,
        metadata=Metadata(source="hops"),
    )


def tiny() -> RolloutsConfig:
    return RolloutsConfig(
        dict.fromkeys(TASKS, tiny_baselines()),
        Logs(1000, holdout=0.5),
        horizon=10,
        starts=6,
        samples=2,
        film=FilmConfig(steps=8, shown=(0, 4, 8), every=4, size=40),
    )


def fake_baseline(baselines: Baselines, kind: str) -> FittedBaseline:
    """A model that stays a share behind the ground truth; nothing is trained."""
    share = {"mlp": 0.5, "plain": 0.9, "gaussian": 0.4}[kind]
    lag = lambda s: lambda o, a, k: o + 0.001 * s * jnp.arange(11.0)  # noqa: E731
    selected = None if kind == "mlp" else lambda count: lag(count / 2)
    return FittedBaseline(kind, lag(share), lag(share + 0.2), (lag(0.8), lag(1.2)), 1.0, selected)


def test_windows_come_from_episodes_that_are_long_enough() -> None:
    log = hops()
    windows = some_windows(log, 30, 4, seed=0)
    assert windows.ground_truth.shape == (4, 30, 11)
    total = sum(max(0, length - 30 + 1) for length in LENGTHS)
    assert some_windows(log, 30, 1000, seed=0).start.shape[0] == total
    scene = last_scene(log, 30)
    np.testing.assert_array_equal(scene.start[0], log.obs[log.episode_starts[3]])
    assert scene.ground_truth.shape == (1, 30, 11)
    with pytest.raises(UserError, match="No held-out episode of hops has 50 steps; the longest has 40"):
        some_windows(log, 50, 4, seed=0)


def test_curves_are_quantiles_over_starts() -> None:
    ground_truth = np.zeros((5, 2, 2))
    predicted = np.zeros((5, 2, 2))
    predicted[:, 1, 0] = np.arange(5.0)
    found = curves(predicted, ground_truth, np.array([0.5, 1.0]))
    np.testing.assert_allclose(found["raw"], [[0.0, 0.2], [0.0, 1.0], [0.0, 1.8]])
    np.testing.assert_allclose(found["normalised"], 2 * found["raw"])


def test_what_diverges_stays_a_number() -> None:
    windows = some_windows(hops(), 10, 3, seed=0)
    found = open_loop(lambda o, a, k: o * 1e9, project=guarded)(windows, jax.random.key(0))
    assert np.abs(found[:, 2:]).max() == 100.0
    assert guarded(jnp.array([jnp.nan, 1.0])).tolist() == [100.0, 1.0]


def test_the_study_follows_films_and_goes_on_after_finished_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.PRESETS, "quick", tiny)
    monkeypatch.setattr(Logs, "load", lambda self, task, level, folder: hops(LENGTHS * 3))
    monkeypatch.setattr(study, "baseline", fake_baseline)
    command = ["study", "rollouts", "--out", str(tmp_path), "--pictures", "drawn"]
    assert main([*command, "--models", "mlp"]) == 0
    assert main([*command, "--models", "plain"]) == 0
    # What the tube does is a test of its own; here, that predictions pass through it.
    monkeypatch.setattr(Baselines, "autoencoder", SimpleNamespace(model=None))
    monkeypatch.setattr(
        study, "Tube", SimpleNamespace(of=lambda *_, quantile: lambda s: s + 0.0002 * jnp.arange(11.0))
    )
    assert main([*command, "--models", "gaussian"]) == 0
    said = capsys.readouterr().out
    assert all(
        name in said
        for name in (
            "MLP",
            "no change",
            "MC-ETM, paper, low energy",
            "Gaussian ensemble, confined",
            "Gaussian ensemble, low energy, confined",
            "rollouts-hopper.gif",
        )
    )
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["horizons"] == [1, 5, 10]
    assert results["films"] == {"hopper": "drawn"}
    models = results["tasks"]["hopper"]
    assert set(models) == {"unchanged", "mlp", "plain", "gaussian"}
    assert set(models["mlp"]) == {"point", "members", "seconds"}  # its spread means nothing
    assert set(models["plain"]) == {"point", "sampled", "selected", "members", "seconds"}
    assert np.shape(models["plain"]["members"]) == (2, 3)
    # Numbers move by up to 0.01 a step, 0.005 on average.
    steps = 0.005 * np.array([[1, 5, 10]] * 3)
    lags = {"unchanged": {"point": 1.0}, "mlp": {"point": 0.5}}
    lags["plain"] = {"point": 0.1, "sampled": 0.1, "selected": 0.0}
    lags["gaussian"] = {"point": 0.6, "selected": 0.0, "confined": 0.4, "selected, confined": 0.2}
    for model, kinds in lags.items():
        for kind, lag in kinds.items():
            np.testing.assert_allclose(models[model][kind]["raw"], lag * steps, rtol=1e-3, atol=1e-6)
    shown = words_in(tmp_path / "rollouts")
    assert {"no change", "MC-ETM, paper", "Gaussian ensemble, low energy, confined"} <= shown
    assert {"ground truth", "MC-ETM", "MLP", "step 0"} <= words_in(tmp_path / "rollouts-hopper")
    with Image.open(tmp_path / "rollouts-hopper.gif") as moving:
        assert getattr(moving, "n_frames", 0) > 1

    def refuse(*_: object) -> None:
        raise AssertionError("a finished model was trained again")

    monkeypatch.setattr(study, "baseline", refuse)
    monkeypatch.setattr(study, "draw_rollouts", lambda *_: None)  # seconds, and seen above
    drawn = RolloutsStudy(out=tmp_path, models=("plain",), pictures="drawn")
    again = run_rollouts(drawn)
    assert json.loads(json.dumps(again["tasks"])) == results["tasks"]
    with pytest.raises(AssertionError):
        run_rollouts(drawn, replace(tiny(), starts=2))
    monkeypatch.setattr(film, "render", lambda *_, **__: None)
    with pytest.raises(UserError, match="MuJoCo cannot render here"):
        run_rollouts(replace(drawn, pictures="mujoco"))
    assert run_rollouts(replace(drawn, pictures="auto"))["films"] == {"hopper": "drawn"}

"""The cross-dataset study: the paper's table, its logs and measures, and the whole at a small size."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from mcetm import UserError
from mcetm.cli import main
from mcetm.data import Metadata, Transitions
from mcetm.tasks import D4RL_LEVELS
from mcetm_experiments.cross_dataset import figures as report
from mcetm_experiments.cross_dataset import study
from mcetm_experiments.cross_dataset.onestep import LevelRows, errors, with_steps
from mcetm_experiments.cross_dataset.published import PUBLISHED
from mcetm_experiments.cross_dataset.settings import CrossDatasetStudy
from mcetm_experiments.cross_dataset.study import CrossConfig, run_cross_dataset
from mcetm_experiments.shared.baselines import Baselines, baseline, point
from mcetm_experiments.shared.locomotion import (
    BASELINES,
    LEVELS,
    MODELS,
    TASKS,
    Logs,
    baselines_on,
    thinned,
    unseen,
)
from mcetm_experiments.shared.settings import Model
from tests.experiments.drawn import words_in
from tests.experiments.subjects import SHORT, tiny_baselines


def tiny() -> CrossConfig:
    return CrossConfig(
        dict.fromkeys(TASKS, tiny_baselines()),
        Logs(1000, holdout=0.3),
        tests=("random", "medium"),
        rows=20,
        lengths=(2,),
        shares=(0.1,),
    )


def some_log(level: str = "medium", rows: int = 1000) -> Transitions:
    """A linear world; levels differ in how far they reach."""
    rng = np.random.default_rng(LEVELS.index(level))
    obs = rng.normal(size=(rows, 3)) * (1 + LEVELS.index(level))
    action = rng.uniform(-1, 1, (rows, 2))
    change = 0.1 * np.column_stack([action, obs[:, :1]])
    last = np.arange(rows) % 50 == 49
    return Transitions.from_arrays(
        obs, action, np.zeros(rows), obs + change, np.zeros(rows, bool), last, metadata=Metadata(source=level)
    )


@pytest.fixture(scope="module")
def baselines(tmp_path_factory: pytest.TempPathFactory) -> Baselines:
    """Trained when a test first asks for them."""
    log = some_log(rows=100)
    return Baselines(
        log, log, tiny_baselines(), key=jax.random.key(0), folder=tmp_path_factory.mktemp("trained")
    )


def test_the_papers_table_is_whole_and_its_bold_numbers_are_the_least() -> None:
    assert set(PUBLISHED) == {(task, train, test) for task in TASKS for train in LEVELS for test in LEVELS}
    assert len(PUBLISHED) == 48
    # In the paper all but these rows have MC-ETM's error in bold, these standard ETM's or the MLP's.
    others = {row: int(np.argmin(values)) for row, values in PUBLISHED.items() if np.argmin(values) != 2}
    assert others == {
        ("hopper", "medium-expert", "medium-expert"): 1,
        ("halfcheetah", "random", "medium-expert"): 0,
        ("halfcheetah", "medium-replay", "medium-expert"): 1,
        ("walker2d", "random", "medium"): 1,
        ("walker2d", "random", "medium-replay"): 1,
        ("walker2d", "random", "medium-expert"): 1,
    }
    assert PUBLISHED["halfcheetah", "medium", "random"] == (0.593238, 0.349435, 0.298135)
    assert LEVELS == D4RL_LEVELS


def test_errors_in_raw_units_and_in_units_of_the_change() -> None:
    ground_truth = np.zeros((3, 2), np.float32)
    predicted = np.array([[1.0, 0.0], [-2.0, 0.0], [0.0, 9.0]], np.float32)
    found = errors(predicted, ground_truth, np.array([1.0, 9.0], np.float32))
    assert found["mean"] == pytest.approx(2.0)
    assert found["median"] == pytest.approx(1.0)
    assert found["normalised"] == pytest.approx(4 / 6)
    assert found["dimensions"] == pytest.approx([1.0, 1 / 3])


def test_rows_that_were_trained_on_are_no_test() -> None:
    test = some_log().head(300)
    train = some_log().head(200)
    np.testing.assert_array_equal(unseen(test, train), np.arange(200, 300))
    tests = LevelRows.of({"medium": test}, train, 40, seed=0)
    rows = {tuple(row) for row in np.asarray(tests.rows["medium"][0])}
    assert len(rows) == 40
    assert rows <= {tuple(row) for row in test.obs[200:]}
    with pytest.raises(UserError, match="among those trained on"):
        LevelRows.of({"medium": train}, train, 40, seed=0)


def test_a_thinned_log_has_whole_episodes_of_the_larger_one() -> None:
    log = some_log()
    small, large = thinned(log, 120), thinned(log, 400)
    assert (len(small), len(large), thinned(log, 5000)) == (120, 400, log)
    assert list(small.episode_lengths) == [50, 50, 20]
    assert {tuple(row) for row in small.obs} < {tuple(row) for row in large.obs}


def test_a_perfect_prediction_has_no_error_and_no_change_has_that_of_the_change() -> None:
    log = some_log()
    tests = LevelRows.of({"medium": log}, some_log("random"), 30, seed=0)
    exact = lambda o, a, k: o + 0.1 * jnp.concatenate([a, o[:1]])  # noqa: E731
    assert tests.errors(exact, key=jax.random.key(0))["medium"]["mean"] < 1e-6
    obs, _, following = tests.rows["medium"]
    still = tests.errors(lambda o, a, k: o, key=jax.random.key(0))["medium"]["mean"]
    assert still == pytest.approx(float(jnp.abs(following - obs).mean()), rel=1e-5)


def test_chains_without_steps_are_the_regressor_and_two_stages_share_the_steps(baselines: Baselines) -> None:
    log, key = baselines.train, jax.random.key(0)
    model, regressor = baselines.plain.model, baselines.gaussian.model
    holdout = LevelRows.of({"medium": log}, some_log("random"), 5, seed=0)
    same = holdout.errors(point(regressor), key=key)
    for stages in ("two-stage", "ambient"):
        found = holdout.errors(point(with_steps(model, "regressor", stages, 0, SHORT)), key=key)
        assert found["medium"]["mean"] == pytest.approx(same["medium"]["mean"], rel=1e-4)
    selected = baseline(baselines, "plain").selected
    assert selected is not None
    assert np.isfinite(holdout.errors(selected(2), key=key)["medium"]["mean"])
    assert baseline(baselines, "gaussian").selected is None
    both = with_steps(model, "noise", "two-stage", 5, SHORT).config
    assert both.latent is not None
    assert (both.start, both.latent.steps, both.ambient.steps) == ("noise", 2, 3)
    assert with_steps(model, "noise", "ambient", 5, SHORT).config.latent is None


def test_the_ensembles_prediction_is_the_mean_of_its_members(baselines: Baselines) -> None:
    log, key = baselines.train, jax.random.key(0)
    one = baseline(baselines, "gaussian")
    obs, action = jnp.asarray(log.obs[0]), jnp.asarray(log.action[0])
    own = np.array([member(obs, action, key) for member in one.members])
    assert not np.allclose(own[0], own[1], atol=1e-4)
    np.testing.assert_allclose(own.mean(axis=0), one.predict(obs, action, key), rtol=1e-4, atol=1e-5)


def test_the_longer_ensemble_is_the_same_after_thrice_the_steps(baselines: Baselines) -> None:
    steps = [trained.history[-1]["step"] for trained in (baselines.gaussian, baselines.longer)]
    assert steps == [baselines.config.gaussian.steps, 3 * baselines.config.gaussian.steps]
    assert baseline(baselines, "longer").name == MODELS["longer"]


def test_trainings_are_kept_by_what_they_depend_on(baselines: Baselines) -> None:
    given: dict[str, Any] = {"key": jax.random.key(0), "folder": baselines._folder}
    again = Baselines(baselines.train, baselines.holdout, baselines.config, **given)
    # The seconds of its training are those of the first time: nothing was trained again.
    assert again.anchored.history == baselines.anchored.history
    for one, other in zip(*(_leaves(r.anchored.model) for r in (again, baselines)), strict=True):
        np.testing.assert_array_equal(one, other)
    homes = [
        Baselines(train, baselines.holdout, baselines.config, key=key, folder=Path("kept")).home(
            "energy", config
        )
        for train, key, config in (
            (baselines.train, jax.random.key(0), baselines.config.anchored),
            (some_log(rows=50), jax.random.key(0), baselines.config.anchored),
            (baselines.train, jax.random.key(1), baselines.config.anchored),
            (baselines.train, jax.random.key(0), baselines.config.plain),
        )
    ]
    assert len(set(homes)) == 4


def _leaves(model: Any) -> list[Any]:
    return [leaf for leaf in jax.tree_util.tree_leaves(model) if eqx.is_array(leaf)]


def test_presets_know_the_tasks() -> None:
    assert set(get_args(Model)) == set(MODELS)
    for name, baselines in BASELINES.items():
        assert [baselines(task).autoencoder.latent_dim for task in TASKS] == [5, 10, 10], name
    assert BASELINES["paper"]("hopper").plain.steps == 100_000
    with pytest.raises(UserError, match="10 transitions is too small"):
        Logs(10)


def test_the_study_fills_its_table_in_several_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.PRESETS, "quick", tiny)
    monkeypatch.setattr(Logs, "load", lambda self, task, level, folder: some_log(level))
    command = ["study", "cross-dataset", "--out", str(tmp_path)]
    assert main([*command, "--levels", "random", "--models", "gaussian"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["rows"]) == 48
    ran = [(r["task"], r["train"], r["test"]) for r in results["rows"] if r["models"]["gaussian"]]
    assert ran == [("hopper", "random", "random"), ("hopper", "random", "medium")]
    assert not results["chains"]
    assert not (tmp_path / "cross-dataset-curves.png").exists()
    said = capsys.readouterr().out
    assert all(word in said for word in ("paper's", "change", "Gaussian", "medium-replay"))
    assert "walker2d" in said

    assert main([*command, "--levels", "medium", "--models", "gaussian", "plain"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    ran = [r for r in results["rows"] if r["models"]["gaussian"]]
    assert len(ran) == 4  # what the first run left is still there
    assert ran[-1]["models"]["plain"]["rows"] == 20
    assert ran[0]["models"]["plain"] is None
    assert set(results["shares"]["hopper"]) == {"gaussian", "plain"}
    assert [part["transitions"] for part in results["shares"]["hopper"]["plain"]] == [70, 700]
    curves = results["chains"]["hopper"]
    assert len(curves) == 4
    assert all(len(curve) == 1 for curve in curves.values())
    assert "two-stage" in capsys.readouterr().out
    panels = {"cross-dataset": "random → medium", "cross-dataset-curves": "hopper: medium → random"}
    for name, panel in panels.items():
        assert {panel, "MC-ETM, paper", "Gaussian ensemble"} <= words_in(tmp_path / name)

    row = (tmp_path / "rows" / "hopper-medium-plain.json").rename(tmp_path / "away.json")
    assert main([*command, "--levels", "random", "--models", "gaussian"]) == 0
    fewer = json.loads((tmp_path / "results.json").read_text())["shares"]["hopper"]["plain"]
    assert [part and part["transitions"] for part in fewer] == [70, None]  # blank: it has not been run
    row.rename(tmp_path / "rows" / "hopper-medium-plain.json")

    def refuse(*_: object) -> None:
        raise AssertionError("a finished part was trained again")

    monkeypatch.setattr(study, "baseline", refuse)
    for drawing in ("draw_rows", "draw_curves"):
        monkeypatch.setattr(study, drawing, lambda *_: None)  # seconds each, and seen above
    again = run_cross_dataset(
        CrossDatasetStudy(out=tmp_path, levels=("medium",), models=("gaussian", "plain"))
    )
    assert json.loads(json.dumps(again["rows"])) == results["rows"]
    with pytest.raises(AssertionError):
        run_cross_dataset(CrossDatasetStudy(out=tmp_path, models=("plain",)), replace(tiny(), rows=10))


def test_small_logs_are_collected_once(tmp_path: Path) -> None:
    logs = Logs(1000)
    log = logs.load("hopper", "random", tmp_path)
    assert len(log) == 1000
    (path,) = tmp_path.glob("hopper-random-*-1000-0.hdf5")
    written = path.stat().st_mtime_ns
    np.testing.assert_array_equal(logs.load("hopper", "random", tmp_path).obs, log.obs)
    assert path.stat().st_mtime_ns == written


def test_an_unknown_level_or_a_missing_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["study", "cross-dataset", "--levels", "expert", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    capsys.readouterr()
    assert main(["study", "cross-dataset", "--seed", "-1", "--out", str(tmp_path / "out")]) == 2
    assert "'CrossDatasetStudy.seed' should be greater" in capsys.readouterr().err
    assert main(["study", "cross-dataset", "--source", "d4rl", "--out", str(tmp_path / "out")]) == 2
    assert "hopper" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_trained_on_a_level_is_found_again_by_level_and_seed(
    baselines: Baselines, tmp_path: Path
) -> None:
    def home(level: str, seed: int) -> Path | None:
        found = baselines_on(baselines.train, level, baselines.config, seed=seed, folder=tmp_path)
        return found.home("regressor", baselines.config.gaussian)

    assert home("medium", 0) == home("medium", 0)
    assert len({home("medium", 0), home("random", 0), home("medium", 1)}) == 3


def test_a_model_that_has_diverged_is_drawn_at_the_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Figure()
    monkeypatch.setattr(report, "figure", lambda *_, **__: nullcontext(drawn))
    errors = {"mlp": {"mean": 0.2}, "diffusion": {"mean": 1e8}}
    models = {**dict.fromkeys(MODELS), **errors}
    row: dict[str, Any] = {"task": "hopper", "train": "random", "test": "medium", "models": models}
    row["paper"] = {"mlp": 0.3, "standard": 0.2, "plain": 0.1}
    report.draw_rows(tmp_path / "unused", {"rows": [row], "models": MODELS})
    lines: dict[Any, Any] = {line.get_label(): line.get_xdata() for line in drawn.axes[0].get_lines()}
    assert (*lines["MLP"], *lines["diffusion"]) == (0.2, 3.0)

"""The didactic study: the function, its measures, and the whole at a small size."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcetm.cli import main
from mcetm.dynamics import (
    AutoencoderSettings,
    DiffusionEnsemble,
    GaussianEnsemble,
    InferenceSettings,
    Langevin,
)
from mcetm_experiments.didactic import study
from mcetm_experiments.didactic.settings import DidacticStudy
from mcetm_experiments.didactic.study import DidacticConfig, run_didactic
from mcetm_experiments.shared.baselines import BaselinesConfig, Trained, scaled_down
from mcetm_experiments.shared.discontinuous import (
    didactic_function,
    distance_to_values,
    draw_transitions,
    impossible,
    jump_distance,
    uniform_grid,
)
from mcetm_experiments.shared.summary import over_seeds
from tests.experiments.drawn import words_in
from tests.experiments.subjects import NoBaselines


def test_the_function_by_hand() -> None:
    pairs = {
        (0.0, 0.0): 1.0,
        (0.2, 0.3): 1.0 - np.sin(0.3),
        (-0.49, -0.49): 1.0 + np.sin(0.49),
        (0.5, 0.0): 1.0,
        (-0.5, 0.0): -1.0,
        (0.0, 0.5): 0.0,
        (0.49, -0.5): 0.0,
        (3.0, 2.0): 1.0,
        (-3.0, 2.0): -1.0,
    }
    state, action = np.array(list(pairs)).T
    np.testing.assert_allclose(didactic_function(state, action), list(pairs.values()))


def test_the_log_is_normal_with_the_stated_noise() -> None:
    log = draw_transitions(20_000, seed=1)
    error = log.next_obs[:, 0] - didactic_function(log.obs[:, 0], log.action[:, 0])
    assert error.std() == pytest.approx(0.05, rel=0.03)
    for column in (log.obs, log.action):
        assert (column.mean(), column.std()) == pytest.approx((0.0, 1.0), abs=0.03)
    assert log.num_episodes == 20_000


def test_the_grid_is_uniform_and_off_the_discontinuities() -> None:
    state, action = uniform_grid(80)
    assert (len(state), state.min(), action.max()) == (6400, -1.0, 1.0)
    assert jump_distance(state, action).min() > 0.005


def test_distances_from_the_discontinuities() -> None:
    state = np.array([0.0, 0.5, 0.46, 0.53, -0.7, 0.0])
    action = np.array([0.0, 0.9, 0.0, 0.46, 0.5, 0.47])
    np.testing.assert_allclose(jump_distance(state, action), [0.5, 0.0, 0.04, 0.03, 0.2, 0.03])


def test_possible_states_are_those_that_the_function_takes_nearby() -> None:
    def away(predicted: float, state: float, action: float) -> float:
        return float(distance_to_values(np.array([predicted]), np.array([state]), np.array([action]))[0])

    assert away(0.7, 0.75, 0.0) == pytest.approx(0.3)  # the plateau at 1
    assert away(0.5, 0.0, 0.75) == pytest.approx(0.5)  # the plateau at 0
    assert away(1.0 - np.sin(0.24), 0.0, 0.2) == 0.0  # the wave over a = 0.15 … 0.25
    assert away(0.5, 0.0, 0.2) == pytest.approx(0.5 - np.sin(0.25))
    assert away(0.0, -0.52, 0.0) == pytest.approx(1.0 - np.sin(np.sqrt(0.05**2 - 0.02**2)))  # −1 or the wave
    assert away(-0.9, -0.52, 0.0) == pytest.approx(0.1)
    assert away(0.5, 0.48, 0.9) == pytest.approx(0.5)  # 0 or 1, and nothing between them
    assert away(0.3, 0.0, 0.52) == pytest.approx(0.5207 - 0.3, abs=0.04)  # 0 or the end of the wave
    # The wave itself is reached only where the disc is.
    assert away(1.4, 0.0, 0.4) == pytest.approx(1.4 - 1.0 + np.sin(0.35))


def test_impossible_means_four_noise_spreads_from_all_of_them() -> None:
    state, action = np.full(4, 0.75), np.zeros(4)
    found = impossible(np.array([1.0, 1.19, 1.21, 0.0]), state, action)
    np.testing.assert_array_equal(found, [False, False, True, True])
    # The ground truth is never impossible, and a mean of two modes is.
    grid = uniform_grid(80)
    assert not impossible(didactic_function(*grid), *grid).any()
    assert impossible(np.array([[0.0]]), np.array([-0.49]), np.array([0.1])).all()


def test_training_time_leaves_compilation_out() -> None:
    history = [{"step": 10, "seconds": 100.0}, {"step": 20, "seconds": 2.0}, {"step": 30, "seconds": 4.0}]
    trained = Trained(None, history, wall=106.0, before=5.0)
    assert trained.clock() == pytest.approx([3.0, 6.0, 9.0])
    assert trained.seconds == pytest.approx(14.0)


def test_summaries_over_seeds() -> None:
    found = over_seeds({"error": [1.0, 3.0], "curve": [[1.0, 3.0], [2.0, 2.0]]})
    assert found["error"] == {"mean": 2.0, "std": pytest.approx(np.sqrt(2.0)), "seeds": [1.0, 3.0]}
    assert found["curve"]["mean"] == [2.0, 2.0]
    assert over_seeds({"error": [1.0]})["error"]["std"] is None


def tiny() -> DidacticConfig:
    none = Langevin(steps=0)
    small = GaussianEnsemble(members=2, elites=2, width=8, depth=1, steps=20, batch_size=16)
    baselines = BaselinesConfig(
        gaussian=small,
        mlp=replace(small, squared=True),
        brief=replace(small, squared=True),
        autoencoder=AutoencoderSettings(latent_dim=1, width=8, depth=1, steps=20, batch_size=16),
        diffusion=DiffusionEnsemble(members=1, width=8, depth=1, steps=20, batch_size=16, sampler_steps=3),
        standard_inference=InferenceSettings(start="uniform", latent=None, ambient=Langevin(steps=2)),
        plain_inference=InferenceSettings(start="noise", latent=None, ambient=Langevin(steps=2)),
    )
    baselines = scaled_down(
        baselines, batch_size=8, count=2, width=8, depth=1, steps=12, latent=none, ambient=none
    )
    return DidacticConfig(baselines, seeds=2, grid=16, starts=2)


def test_the_study_writes_what_it_found_and_goes_on_after_finished_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.PRESETS, "quick", tiny)
    few = ("MLP, equal steps", "diffusion", "MC-ETM")  # the others differ in settings, not in what is done
    monkeypatch.setattr(study, "MODELS", {name: study.MODELS[name] for name in few})
    assert main(["study", "didactic", "--transitions", "1000", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("MLP", "diffusion", "MC-ETM", "near a jump", "impossible"))
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results["models"]) == set(study.MODELS)
    assert results["config"]["transitions"] == 1000
    for name, model in results["models"].items():
        assert ("sampled" in model) == (not name.startswith("MLP"))
        point = model["point"]
        assert len(point["near"]["seeds"]) == 2
        assert min(point["near"]["mean"], point["away"]["mean"]) <= point["error"]["mean"]
        assert model["seconds"] > 0
    assert {"ground truth", *few} <= words_in(tmp_path / "didactic")
    means = {f"{name}: {results['models'][name]['point']['error']['mean']:.3f}" for name in few}
    assert means <= words_in(tmp_path / "didactic-errors"), "the panel says what the table says"

    monkeypatch.setattr(study, "Baselines", NoBaselines)
    for drawing in ("draw_surfaces", "draw_errors"):
        monkeypatch.setattr(study, drawing, lambda *_, **__: None)  # seconds each, and seen above
    again = run_didactic(DidacticStudy(out=tmp_path, transitions=1000))
    assert again["models"] == results["models"]
    with pytest.raises(AssertionError, match="trained again"):
        run_didactic(DidacticStudy(out=tmp_path, transitions=1500))


def test_too_few_transitions_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "didactic", "--transitions", "10"]) == 2
    assert "at least 1,000 transitions" in capsys.readouterr().err

"""The contact study: its data, its measures, and the whole of it at a small size."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray

from mcetm import Transitions, UserError
from mcetm.cli import main
from mcetm_experiments.contact import study
from mcetm_experiments.contact.settings import ContactStudy
from mcetm_experiments.contact.study import ContactConfig, errors, run_contact, unit_quaternion
from mcetm_experiments.shared.baselines import Baselines, BaselinesConfig, FittedBaseline, baseline
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.shared.openloop import Windows, open_loop
from mcetm_experiments.shared.tosses import read_tosses
from tests.experiments.drawn import words_in
from tests.experiments.subjects import tiny_baselines


def write_tosses(path: Path, tosses: int = 8, length: int = 60) -> Path:
    """Cubes that fall, stop at the table and turn at a constant rate."""
    rng = np.random.default_rng(0)
    states = []
    for _ in range(tosses):
        speed, turn = rng.normal(size=3), rng.normal(size=3)
        steps = np.arange(length)[:, None] / 148
        position = rng.normal(size=3) * [1, 1, 0] + [0, 0, 4] + speed * [1, 1, 0] * steps
        position[:, 2] = np.maximum(position[:, 2] - 90 * steps[:, 0] ** 2, 1.0)
        angle = np.linalg.norm(turn) * steps[:, 0] / 2
        rotation = np.column_stack([np.cos(angle), np.sin(angle)[:, None] * turn / np.linalg.norm(turn)])
        rest = np.column_stack([np.tile(speed, (length, 1)), np.tile(turn, (length, 1))])
        states.append(np.column_stack([position, rotation, rest]))
    np.savez(path, states=np.concatenate(states).astype(np.float32), toss_lengths=np.full(tosses, length))
    return path


def tiny() -> ContactConfig:
    return ContactConfig(tiny_baselines(), seeds=1, holdout=0.3, every=30, draws=1)


def test_tosses_become_transitions_without_actions_and_rewards(tmp_path: Path) -> None:
    log = read_tosses(write_tosses(tmp_path / "cube_tosses.npz"))
    assert (log.num_episodes, len(log), log.obs_dim, log.action_dim) == (8, 8 * 59, 13, 0)
    assert log.metadata.absent == ("reward",) or set(log.metadata.absent) == {"reward", "action"}
    np.testing.assert_array_equal(log.next_obs[0], log.obs[1])
    assert not log.terminated.any()


def test_the_real_tosses_can_be_read(real_data: Path) -> None:
    path = real_data / "contactnets" / "cube_tosses.npz"
    if not path.exists():
        pytest.skip("no cube tosses")
    log = read_tosses(path)
    assert (log.num_episodes, len(log)) == (570, 59_953 - 570)
    # At rest the centre lies half a cube above the table.
    resting = log.next_obs[log.episode_ends - 1, 2] / study.WIDTH
    assert np.median(resting) == pytest.approx(0.5, abs=0.03)


def test_errors_are_in_cube_widths_and_degrees() -> None:
    ground_truth = np.zeros((1, 2, 13))
    ground_truth[..., 3] = 1.0
    other = ground_truth.copy()
    other[0, 0, 0] = 2.0  # one cube width
    half = np.radians(30) / 2
    other[0, 1, 3:7] = -np.array([np.cos(half), np.sin(half), 0, 0])  # the sign of a quaternion means nothing
    found = errors(other, ground_truth)
    np.testing.assert_allclose(found["position"], [1.0, 0.0])
    np.testing.assert_allclose(found["rotation"], [0.0, 30.0], atol=1e-4)


def test_rotations_stay_on_the_unit_sphere() -> None:
    state = unit_quaternion(jnp.arange(13.0))
    assert float(jnp.linalg.norm(state[3:7])) == pytest.approx(1.0)
    np.testing.assert_array_equal(state[:3], [0, 1, 2])


def test_open_loop_feeds_a_model_with_its_own_predictions(tmp_path: Path) -> None:
    log = read_tosses(write_tosses(tmp_path / "cube_tosses.npz"))
    windows = Windows.of(log, 10, every=7)
    starts = len(range(0, 59 - 10 + 1, 7))
    assert windows.ground_truth.shape == (8 * starts, 10, 13)
    np.testing.assert_array_equal(windows.ground_truth[1, 0], log.next_obs[7])
    found = open_loop(lambda o, a, k: o + 1.0, batch_size=5)(windows, jax.random.key(0))
    added = np.arange(1.0, 11.0, dtype=np.float32)
    np.testing.assert_allclose(found, windows.start[:, None] + added[:, None], rtol=1e-5)


def test_the_study_writes_what_it_found_and_goes_on_after_finished_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_tosses(tmp_path / "cube_tosses.npz")
    monkeypatch.setitem(study.PRESETS, "quick", tiny)

    def three(
        train: Transitions, holdout: Transitions, config: BaselinesConfig, *, key: PRNGKeyArray
    ) -> Iterator[FittedBaseline]:
        models = Baselines(train, holdout, config, key=key)
        # Every model is followed alike, and each takes seconds to compile; other studies train the others.
        return (baseline(models, kind) for kind in ("gaussian", "plain", "diffusion"))

    monkeypatch.setattr(study, "train_baselines", three)
    out = tmp_path / "out"
    assert main(["study", "contact", "--data", str(data), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    names = ("Gaussian ensemble", "MC-ETM, plain", "diffusion")
    assert all(name in said for name in names)
    assert "least rotation error" in said
    results = json.loads((out / "results.json").read_text())
    for name in names:
        for quantity in ("position", "rotation"):
            cells = results["models"][name]["point"][quantity]
            assert len(cells["mean"]) == 4
            assert np.isfinite(cells["mean"]).all()
    assert {"ground truth", *names} <= words_in(out / "contact")

    def refuse(*_: object) -> None:
        raise AssertionError("a finished seed was run again")

    monkeypatch.setattr(study, "_run_seed", refuse)
    monkeypatch.setattr(study, "draw_contact", lambda *_: None)  # seconds, and seen above
    again = run_contact(ContactStudy(out=out, data=data))
    assert json.loads(json.dumps(again["models"])) == results["models"]
    with pytest.raises(AssertionError):
        run_contact(ContactStudy(out=out, data=data), replace(tiny(), every=25))


def test_summaries_and_winners_over_seeds() -> None:
    def model(*levels: float) -> dict[str, Any]:
        curves = [{"position": np.full(50, x), "rotation": np.full(50, x)} for x in levels]
        return study._summary([{"point": c, "sampled": c, "seconds": 1.0} for c in curves])

    models = {"good": model(1.0, 3.0), "close": model(2.0, 2.5), "bad": model(8.0, 9.0)}
    assert models["good"]["point"]["position"]["mean"] == [2.0] * 4
    assert models["good"]["point"]["position"]["std"] == pytest.approx([np.sqrt(2)] * 4)
    winners = study._winners(models)
    assert winners["position"]["1"] == "good (not for every seed against close)"
    assert (
        study._winners({"good": models["good"], "bad": models["bad"]})["rotation"]["50"]
        == "good (for every seed)"
    )


def test_a_damaged_part_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    path.write_text("{")
    assert kept(path, {"a": 1}, lambda: {"x": 2}) == {"x": 2}
    assert kept(path, {"a": 1}, lambda: {"x": 3}) == {"x": 2}
    assert kept(path, {"a": 2}, lambda: {"x": 3}) == {"x": 3}


def test_a_missing_or_wrong_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "contact", "--out", str(tmp_path)]) == 2
    assert "contact-nets" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"nothing\.npz does not exist"):
        read_tosses(tmp_path / "nothing.npz")
    np.savez(tmp_path / "wrong.npz", states=np.zeros((5, 12)), toss_lengths=np.array([5]))
    with pytest.raises(UserError, match="rows × 13"):
        read_tosses(tmp_path / "wrong.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(UserError, match="not a file of cube tosses"):
        read_tosses(tmp_path / "text.npz")

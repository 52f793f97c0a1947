"""`mcetm.load_run`: card, world, policies, settings and results of a finished run, from its folder."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import mcetm
from mcetm import UserError
from mcetm.cli import main
from tests.conftest import random_fields
from tests.pipeline.runs import write_policy, write_run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two seeds of behaviour cloning, from a log with names and without an environment."""
    monkeypatch.chdir(tmp_path)
    log = mcetm.Transitions.from_arrays(**random_fields((40, 40)))
    log.with_metadata(obs_names=("level_1", "level_2", "demand"), action_low=(-1.0, -np.inf)).with_metadata(
        action_high=(1.0, np.inf)
    ).save("plant.npz")
    settings = "algorithm.steps=2", "algorithm.width=8", "algorithm.batch_size=8"
    assert (
        main(["train", "plant.npz", "--algo", "bc", "--seeds", "2", "--out", "run", "--set", *settings]) == 0
    )
    return tmp_path / "run"


def test_everything_about_a_run(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = mcetm.load_run(run)
    assert found.settings.algorithm == mcetm.BC(steps=2, width=8, batch_size=8, learning_rate=1e-3)
    assert found.seeds == (0, 1)
    assert [policy.about["seed"] for policy in found.policies] == [0, 1]
    assert found.card.metadata.obs_names == ("level_1", "level_2", "demand")
    assert found.card.metadata.action_high == (1.0, np.inf)
    assert found.card.warnings == mcetm.make_card(found.log).warnings
    assert (found.world, found.task, found.result) == (None, None, None)
    assert str(found) == "behaviour cloning on plant, 2 seeds: return not measured"
    with pytest.raises(UserError, match="no world beside it"):
        found.policies[0].trust(np.zeros(3))
    (tmp_path / "there").mkdir()
    Path("plant.npz").rename("there/moved.npz")
    monkeypatch.chdir(tmp_path / "there")
    again = mcetm.load_run(run)
    assert again.card == found.card, "the card is in the folder"
    with pytest.raises(UserError, match="there is no such file"):
        _ = again.log
    assert len(mcetm.load_run(run, dataset="moved.npz").log) == 80


def test_a_run_in_python_is_the_run_of_the_command(run: Path) -> None:
    made = mcetm.load_run(run).settings
    weights = [path.read_bytes() for path in sorted(run.rglob("policy.safetensors"))]
    again = mcetm.train(made, run)  # it is finished: nothing is trained
    assert (again.settings, again.results) == (made, mcetm.load_run(run).results)
    other = mcetm.train(mcetm.TrainConfig(**vars(made)), run.parent / "other")
    assert [path.read_bytes() for path in sorted(other.folder.rglob("policy.safetensors"))] == weights
    with pytest.raises(UserError, match="a run with other settings"):
        mcetm.train(dataclasses.replace(made, seed=1), run)


def test_a_run_that_is_not_finished_says_how_to_go_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [60.0])
    (run / "results.json").unlink()
    with pytest.raises(UserError, match=r"is not finished; go on with: mcetm train --resume"):
        mcetm.load_run(run)
    with pytest.raises(UserError, match="is not a run"):
        mcetm.load_run(tmp_path / "nothing")


def test_a_card_from_anybody_has_a_schema(run: Path) -> None:
    content = json.loads((run / "card.json").read_text())
    (run / "card.json").write_text(json.dumps({**content, "episodes": "many"}))
    with pytest.raises(UserError, match=r"card\.json cannot be used: 'episodes' should be"):
        _ = mcetm.load_run(run).card


def test_a_policy_says_which_seed_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (3, 10):
        write_policy(tmp_path / "policy" / f"seed-{seed}", "pendulum")
    mcetm.load_policy(tmp_path)
    assert (
        "policies of the seeds 3, 10; this is that of seed 3 (choose with seed=)" in capsys.readouterr().err
    )
    mcetm.load_policy(tmp_path, seed=10)
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError, match="has no policy of seed 4, but of 3, 10"):
        mcetm.load_policy(tmp_path, seed=4)


@pytest.mark.parametrize(
    ("obs", "words"),
    [
        ([np.nan, 0.0, 0.0], "an observation is not finite"),
        ([1e300, 0.0, 0.0], "an observation is not finite"),
        (np.zeros(4), "takes observations of width 3, not"),
        (np.zeros((2, 2, 3)), "takes observations of width 3, not"),
        (0.0, "takes observations of width 3, not"),
        ({"level": 1.0}, "takes 3 numbers for each observation, and this dict has not"),
        (["a", "b", "c"], "takes 3 numbers for each observation, and this list has not"),
    ],
)
def test_what_is_no_observation_is_refused(tmp_path: Path, obs: object, words: str) -> None:
    policy = mcetm.load_policy(write_policy(tmp_path, "pendulum"))
    with pytest.raises(UserError, match=words):
        policy(obs)

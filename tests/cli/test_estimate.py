"""`mcetm estimate`, `mcetm select` and `mcetm compare` on a run that no environment can measure."""

import json
from pathlib import Path

import pytest

from mcetm.cli import main
from mcetm.estimates import EstimateSettings, Tournament
from mcetm.pipeline import select
from mcetm.pipeline.train import train_run
from tests.estimates.problems import line_log
from tests.pipeline.runs import small_config

_SIZES = {
    "fqe": {"steps": 30, "width": 8, "depth": 1, "replicas": 2, "critics": 1, "batch_size": 16},
    "doubly_robust": {"behaviour.steps": 20, "behaviour.width": 8, "resamples": 10},
    "model": {"steps": 20, "width": 8, "depth": 1, "members": 2, "elites": 2},
    "model_based": {"starts": 10},
    "world.reward": {"steps": 20, "width": 8},
    "world.pairs": {"steps": 20, "autoencoder_steps": 20, "width": 8, "autoencoder_width": 8, "folds": 1},
}
SMALL = [f"{part}.{name}={value}" for part, sizes in _SIZES.items() for name, value in sizes.items()]


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a log of nobody's task, and its estimates."""
    folder = tmp_path_factory.mktemp("runs")
    line_log(20).save(folder / "line.npz")
    config = small_config(str(folder / "line.npz"), algo="bc")
    train_run(config, folder / "run", line_log(20))
    assert run("estimate", folder / "run", "--out", folder / "out", "--set", *SMALL) == 0
    return folder / "run"


def test_every_policy_has_a_line_a_file_and_a_place_in_the_figure(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = sorted(path.name for path in (trained / "estimates").iterdir())
    assert names == sorted(
        f"seed-{seed}-{estimator}.json" for seed in (0, 1) for estimator in ("fqe", "model", "doubly-robust")
    )
    assert (trained.parent / "out" / "estimate.svg").is_file()
    assert run("estimate", trained, "--json", "--out", tmp_path, "--set", *SMALL, 'estimators=["model"]') == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert list(found["policies"]) == ["seed-0", "seed-1"]
    assert list(found["policies"]["seed-0"]["estimates"]) == ["model"]
    assert "at most 4 steps (the longest episode of the log)" in found["quantity"]


def test_a_plan_goes_on_from_call_to_call(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("select", trained, "--budget", 2, "--out", tmp_path) == 0
    assert "Next episode (1 of 2)" in capsys.readouterr().out
    assert run("select", trained, "--measured", "seed-1=-0.5", "--out", tmp_path) == 0
    assert "Next episode (2 of 2)" in capsys.readouterr().out
    assert run("select", trained, "--measured", "seed-0=-9", "--out", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in found["candidates"]].count("seed-0") == 1
    assert found["plan"]["next"] is None
    assert found["plan"]["deploy"] == "seed-1"
    assert run("select", trained, "--measured", "seed-7=1", "--out", tmp_path) == 2
    assert "no policy 'seed-7'" in capsys.readouterr().err


def test_what_wins_the_tournament_is_what_policies_are_estimated_with(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EstimateSettings] = []
    hold = lambda asked, log, quantity, settings, **_: Tournament(  # noqa: E731
        tuple(settings), (3.0, 1.0, 2.0, 4.0)
    )
    monkeypatch.setattr(select, "hold_tournament", hold)
    monkeypatch.setattr(select, "estimate_runs", lambda runs, *, settings, seed: asked.append(settings))
    assert run("select", trained, "--tournament", "--out", tmp_path, "--set", *SMALL) == 0
    assert "won: width 4, learning rate 0.003, polyak 0.1: 1" in capsys.readouterr().err
    assert asked[0].fqe.width == 4
    assert asked[0].fqe.steps == 30


def test_a_comparison_says_that_its_numbers_are_estimates(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compare", trained, "--json", "--out", tmp_path) == 0
    found = json.loads(capsys.readouterr().out)
    assert "returns are estimates, not measured" in found["notes"][0]
    cell = found["algorithms"]["behaviour cloning"]["datasets"]["line"]
    assert cell["seeds"] == [0, 1]
    assert found["measure"] == "return"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("estimate",), "Name the folders of the runs"),
        (("select",), "Name the folders of the runs"),
        (("estimate", "nowhere"), "nowhere is not a run"),
        (("estimate", "nowhere", "--set", "fqe.step=3"), "no setting 'fqe.step'; did you mean 'fqe.steps'?"),
        (
            ("estimate", "nowhere", "--set", "discount=2"),
            "The setting 'discount' should be less than or equal",
        ),
        (("estimate", "nowhere", "--task", "tank"), "--task is for the log of --log"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err


def test_a_run_without_estimates_says_how_to_make_them(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "results.json", "metrics.jsonl", "environment.json"):
        (bare / name).write_text((trained / name).read_text())
    assert run("compare", bare, "--out", tmp_path) == 2
    assert f"Estimate them first: mcetm estimate {bare}" in capsys.readouterr().err

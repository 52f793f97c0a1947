"""Settings that cannot be are refused before anything starts, by their whole path."""

from pathlib import Path

import pytest

from mcetm.cli import main

REFUSED = [
    ("--set algorithm.learner.batch_size=0", "'algorithm.learner.batch_size' should be", "not 0"),
    ("--set algorithm.learner.discount=2", "'algorithm.learner.discount' should be less than 1", "not 2"),
    ("--algo mopo --set algorithm.learner.discount=1", "'algorithm.learner.discount' should be", "not 1"),
    ("--set model.width=0", "'model.width' should be", "not 0"),
    ("--set model.regressor.width=0", "'model.regressor.width' should be", "not 0"),
    ("--set model.regressor.elites=9", "'model.regressor' has 9 elites of 4 members", ""),
    ("--seeds 0", "--seeds must be at least 1", "not 0"),
    ("--set seeds=0", "'seeds' should be", "not 0"),
    ("--seed -1", "'seed' should be", "not -1"),
    ("--set holdout=1.0", "'holdout' should be less than 1", "not 1.0"),
    ("--steps -5", "--steps must be at least 1", "not -5"),
    ("--set algorithm.learner.steps=-5", "'algorithm.learner.steps' should be", "not -5"),
    ("--set evaluation.episodes=0", "'evaluation.episodes' should be", "not 0"),
    ("--set evaluation.every=0", "'evaluation.every' should be", "not 0"),
    ("--set algorithm.rollout.horizon=0", "'algorithm.rollout.horizon' should be", "not 0"),
    ("--set algorithm.penalty=NaN", "'algorithm.penalty' should be", "not nan"),
    ("--set algorithm.learner.temperature=0", "'algorithm.learner.temperature' should be", "not 0"),
    ("--set world.calibration.quantile=1.5", "'world.calibration.quantile' should be", "not 1.5"),
    ("--set algorithm.truncate=1", "'algorithm.truncate' should be", "not 1"),
    ("--set evaluation.every=true", "'evaluation.every' should be", "not True"),
    ("--set algorithm.spread_of=all", "'algorithm.spread_of' should be 'values', 'ends' or", "not 'all'"),
]
UNKNOWN = [
    ("algorithm.lambda=1", "no setting 'algorithm.lambda'; known here:"),
    ("algorithm.penalti=1", "no setting 'algorithm.penalti'; did you mean 'algorithm.penalty'?"),
    ("algorithm.learner.widht=8", "did you mean 'algorithm.learner.width'?"),
    ("model.regressor.widht=8", "did you mean 'model.regressor.width'?"),
    ("world.calibration.quantil=0.9", "did you mean 'world.calibration.quantile'?"),
    ("evaluation.episode=3", "did you mean 'evaluation.episodes'?"),
    ("sedes=3", "did you mean 'seeds'?"),
    ("policy.penalty=2", "no setting 'policy'; known here"),
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence that a command ends with."""
    assert main(["train", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("mcetm: ")
    assert said.err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == [], "no folder is left behind"
    return said.err


@pytest.mark.parametrize(("arguments", "words", "value"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_is_refused_by_its_path(
    arguments: str, words: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, *arguments.split())
    assert words in said
    assert said.rstrip().endswith(f"{value}.")


@pytest.mark.parametrize(("change", "words"), UNKNOWN, ids=[row[0] for row in UNKNOWN])
def test_an_unknown_setting_suggests_the_nearest(
    change: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refusal(capsys, "--set", change)


def test_an_unknown_algorithm_or_model_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'mobile'?" in refusal(capsys, "--algo", "mobil")
    assert "did you mean 'manifold-etm'?" in refusal(capsys, "--model", "manifold-emt")

"""Where the models of earlier runs are: in these, or where these had theirs from."""

from dataclasses import replace
from pathlib import Path

from mcetm.files import write_json
from mcetm.pipeline.config import TrainConfig, plain_of
from mcetm.pipeline.models import earlier_models
from mcetm.pipeline.presets import make_config


def run(folder: Path, models_from: Path | None) -> TrainConfig:
    """The settings of a run, in its folder."""
    config = replace(make_config("quick"), models_from=None if models_from is None else str(models_from))
    write_json(folder / "config.json", plain_of(config))
    return config


def test_models_of_models(tmp_path: Path) -> None:
    assert earlier_models(run(tmp_path / "first", None)) == []
    run(tmp_path / "second", tmp_path / "first")
    config = run(tmp_path / "third", tmp_path / "second")
    assert earlier_models(config) == [tmp_path / "second" / "models", tmp_path / "first" / "models"]
    gone = replace(config, models_from=str(tmp_path / "none"))
    assert earlier_models(gone) == [tmp_path / "none" / "models"]


def test_runs_that_name_each_other_do_not_go_round_for_ever(tmp_path: Path) -> None:
    run(tmp_path / "first", tmp_path / "second")
    config = run(tmp_path / "second", tmp_path / "first")
    assert earlier_models(config) == [tmp_path / "first" / "models", tmp_path / "second" / "models"]

"""A run's log is found again from any folder, or one sentence says how to name it."""

import json
from pathlib import Path

import pytest

import mcetm
from mcetm.cli import main
from mcetm.pipeline.source import located
from mcetm.tasks.datasets import source_name
from tests.conftest import random_fields

SMALL = [
    *("--algo", "bc", "--seeds", "1", "--steps", "2"),
    *("--set", "algorithm.width=8", "algorithm.batch_size=8"),
]


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    mcetm.Transitions.from_arrays(**random_fields((30, 30))).save("plant.npz")


def test_a_log_is_named_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "plant.npz", *SMALL]) == 0
    run = tmp_path / "here" / "runs" / "plant-bc-quick"
    assert json.loads((run / "config.json").read_text())["dataset"] == str(tmp_path / "here" / "plant.npz")
    monkeypatch.chdir(tmp_path / "there")
    assert main(["train", "--resume", str(run)]) == 0, "from any folder"
    capsys.readouterr()
    (tmp_path / "here" / "plant.npz").rename(tmp_path / "there" / "moved.npz")
    assert main(["train", "--resume", str(run)]) == 2
    said = capsys.readouterr().err
    assert "plant.npz, and there is no such file; say where it is now: mcetm train --resume" in said
    assert main(["train", "moved.npz", "--resume", str(run)]) == 0
    mcetm.Transitions.from_arrays(**random_fields((30, 30), seed=1)).save("other.npz")
    capsys.readouterr()
    assert main(["train", "--resume", str(run), "--dataset", "other.npz"]) == 2
    assert "other.npz is not the log that" in capsys.readouterr().err


def test_one_log_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "plant.npz", "--dataset", "other.npz"]) == 2
    assert capsys.readouterr().err == "mcetm: Name one log: plant.npz, or --dataset other.npz.\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/data/plant.csv", "plant"),
        ("hopper_medium-v2.hdf5", "hopper-medium-v2"),
        ("d4rl:hopper-medium-v2", "hopper-medium-v2"),
        ("minari:mujoco/hopper/medium-v0", "mujoco/hopper/medium-v0"),
        ("/data/store/plant-v0", "plant-v0"),
    ],
)
def test_a_log_has_a_short_name(source: str, name: str) -> None:
    assert source_name(source) == name


def test_names_are_no_files() -> None:
    assert located("pendulum-mixed") == "pendulum-mixed"
    assert Path(located("plant.npz")).is_absolute()

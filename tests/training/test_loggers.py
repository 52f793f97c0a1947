"""Metrics are sent elsewhere as they were noted; a package that is missing is one sentence."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Transitions, UserError
from mcetm.cli import main
from mcetm.training import (
    CSVLogger,
    JSONLinesLogger,
    MLflowLogger,
    TensorBoardLogger,
    WandbLogger,
    train_loop,
)
from mcetm.training.loggers import require_logger
from tests.conftest import random_fields

LINES: list[dict[str, Any]] = [
    {"step": 10, "loss": [1.5, 2.5], "seconds": 0.25},
    {"step": 20, "loss": [1.0, 2.0], "seconds": 0.5, "return": -7.0},
    {"step": 30, "loss": [0.5, 1.0], "seconds": 0.75},
]
FLAT = [("loss/0", 10, 1.5), ("loss/1", 10, 2.5), ("return", 20, -7.0), ("loss/0", 30, 0.5)]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_a_column_for_each_series_whenever_it_comes(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path / "new" / "log.csv")
    for line in LINES:
        logger(line)
    found = rows(tmp_path / "new" / "log.csv")
    assert list(found[0]) == ["step", "loss/0", "loss/1", "seconds", "return"]
    assert [row["return"] for row in found] == ["", "-7.0", ""]
    for name, step, value in FLAT:
        assert float(found[step // 10 - 1][name]) == value


@pytest.mark.parametrize("kind", [CSVLogger, JSONLinesLogger])
def test_a_training_that_goes_on_replaces_what_it_logs_again(kind: Any, tmp_path: Path) -> None:
    first, second = kind(tmp_path / "killed"), kind(tmp_path / "killed")
    for line in LINES:
        first({**line, "seconds": 9.0})
    for line in LINES[1:]:
        second(line)
    whole = kind(tmp_path / "whole")
    for line in [{**LINES[0], "seconds": 9.0}, *LINES[1:]]:
        whole(line)
    assert (tmp_path / "killed").read_text() == (tmp_path / "whole").read_text()


def test_json_lines_keep_lists(tmp_path: Path) -> None:
    logger = JSONLinesLogger(tmp_path / "log.jsonl")
    for line in LINES:
        logger(line)
    assert [json.loads(text) for text in (tmp_path / "log.jsonl").read_text().splitlines()] == LINES


def test_a_training_logs_every_chunk(tmp_path: Path) -> None:
    def step(state: Any, data: Any, *, key: Any) -> tuple[Any, dict[str, Any]]:
        return state + 1.0, {"loss": state}

    loggers = [CSVLogger(tmp_path / "log.csv"), JSONLinesLogger(tmp_path / "log.jsonl")]
    start = jnp.zeros(2)
    found = train_loop(step, start, None, steps=6, key=jax.random.key(0), chunk=2, callbacks=loggers)
    assert [int(row["step"]) for row in rows(tmp_path / "log.csv")] == [2, 4, 6]
    assert [json.loads(text) for text in (tmp_path / "log.jsonl").read_text().splitlines()] == found.history


@pytest.mark.parametrize("content", [b"name,age\nx,3\n", b"\xff\xfe", b"step,loss\nmany,2\n"])
def test_a_file_of_the_users_own_is_left_alone(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"own\.csv cannot be used"):
        CSVLogger(tmp_path / "own.csv")(LINES[0])
    assert (tmp_path / "own.csv").read_bytes() == content


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda folder: TensorBoardLogger(folder),
            r'needs tensorboardX, .* pip install "mcetm\[tensorboard\]"',
        ),
        (lambda folder: WandbLogger(), r"needs wandb, which is not installed"),
        (lambda folder: MLflowLogger(), r"needs mlflow, which is not installed"),
    ],
)
def test_a_missing_package_is_one_sentence(
    make: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=words):
        make(tmp_path / "none")
    assert not list(tmp_path.iterdir())


def tensorboard_points(folder: Path) -> dict[tuple[str, int], float]:
    """Value of each series at each step, in the format's own words."""
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    (path,) = folder.iterdir()
    content, found = path.read_bytes(), {}
    while content:  # length, its checksum, a message, its checksum
        (length,) = struct.unpack("<Q", content[:8])
        event = events.Event.FromString(content[12 : 12 + length])
        found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        content = content[16 + length :]
    return found


def wandb_points(folder: Path) -> dict[tuple[str, int], float]:
    """The history that an offline run would send."""
    wandb = pytest.importorskip("wandb")
    records = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    wandb.teardown()  # as at the end of a process: its service writes the file
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    content, place, message, found = path.read_bytes(), 7, b"", {}
    while place + 7 <= len(content):  # blocks of 32 KiB; checksum, length and kind before each part
        if (left := 32_768 - place % 32_768) < 7:
            place += left
            continue
        length, kind = struct.unpack("<4xHB", content[place : place + 7])
        message += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            history, message = records.Record.FromString(message).history, b""
            for item in history.item:
                name = item.key or "/".join(item.nested_key)
                found[name, history.step.num] = json.loads(item.value_json)
    return found


def mlflow_points(uri: str, experiment: str, params: dict[str, str]) -> dict[tuple[str, int], float]:
    """What MLflow's own client reads of the only run of an experiment."""
    client = pytest.importorskip("mlflow").MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    assert run.data.params.items() >= params.items()
    assert run.info.status == "FINISHED"
    history = [m for name in run.data.metrics for m in client.get_metric_history(run.info.run_id, name)]
    return {(point.key, point.step): point.value for point in history}


def send(logger: Any) -> None:
    for line in LINES:
        logger(line)
    logger.close()


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that neither chat nor call home."""
    for name, value in {"WANDB_SILENT": "true", "WANDB_MODE": "offline", "DO_NOT_TRACK": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def assert_every_point(found: dict[tuple[str, int], float]) -> None:
    for name, step, value in FLAT:
        assert found[name, step] == value
    assert ("return", 10) not in found


def test_tensorboard_has_every_point(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    send(TensorBoardLogger(tmp_path / "board"))
    assert_every_point(tensorboard_points(tmp_path / "board"))


@pytest.mark.usefixtures("quiet")
@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_a_run_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    send(WandbLogger(folder=tmp_path, mode="offline", config={"algorithm": "BC"}))
    assert_every_point(wandb_points(tmp_path))


def small_log(folder: Path) -> Path:
    path = folder / "log.npz"
    Transitions.from_arrays(**random_fields((20,) * 12)).save(path)
    return path


@pytest.mark.usefixtures("quiet")
@pytest.mark.filterwarnings("ignore")
def test_a_run_logs_wherever_it_is_told_to(tmp_path: Path) -> None:
    for package in ("tensorboardX", "wandb", "mlflow"):
        pytest.importorskip(package)
    settings = ["algorithm.steps=20", "algorithm.width=8", "algorithm.depth=1", "algorithm.batch_size=8"]
    run = tmp_path / "run"
    command = ["train", "--dataset", str(small_log(tmp_path)), "--algo", "bc", "--seeds", "2"]
    where = ["csv", "tensorboard", "wandb", "mlflow"]
    assert main([*command, "--out", str(run), "--log", *where, "--set", *settings]) == 0
    line = json.loads((run / "metrics.jsonl").read_text())
    (row,) = rows(run / "metrics.csv")
    assert int(row["step"]) == 20
    store = f"sqlite:///{run / 'mlflow.db'}"
    found = {
        "csv": {(name, 20): float(value) for name, value in row.items()},
        "tensorboard": tensorboard_points(run / "tensorboard"),
        "wandb": wandb_points(run),
        "mlflow": mlflow_points(store, "mcetm", {"algorithm": "behaviour cloning"}),
    }
    for points in found.values():
        np.testing.assert_allclose([points["loss/0", 20], points["loss/1", 20]], line["loss"])
    # MLflow takes seconds to make a store; another experiment goes into the same one.
    send(MLflowLogger("mine", uri=store, name="one", config={"depth": 2}))
    assert_every_point(mlflow_points(store, "mine", {"depth": "2"}))


def test_a_logger_that_is_not_here_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    command = ["train", "--dataset", str(small_log(tmp_path)), "--algo", "bc", "--out", str(tmp_path / "run")]
    assert main([*command, "--log", "mlflow"]) == 2
    assert "mcetm: Logging to mlflow needs mlflow" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_unknown_logger_is_one_sentence() -> None:
    with pytest.raises(UserError, match="There is no logger 'excel'; there are csv, tensorboard"):
        require_logger("excel")

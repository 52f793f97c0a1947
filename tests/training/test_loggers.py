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


def test_tensorboard_has_every_point(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    logger = TensorBoardLogger(tmp_path / "board")
    for line in LINES:
        logger(line)
    logger.close()
    (path,) = (tmp_path / "board").iterdir()
    content, found = path.read_bytes(), {}
    while content:  # length, its checksum, a message, its checksum
        (length,) = struct.unpack("<Q", content[:8])
        event = events.Event.FromString(content[12 : 12 + length])
        found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        content = content[16 + length :]
    for name, step, value in FLAT:
        assert found[name, step] == value


@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_a_run_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    logger = WandbLogger(folder=tmp_path, mode="offline", config={"algorithm": "BC"})
    for line in LINES:
        logger(line)
    logger.close()
    (path,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert b"loss/1" in path.read_bytes()


@pytest.mark.filterwarnings("ignore")  # of the packages that it is made of
def test_mlflow_keeps_a_run_in_a_local_store(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    uri = f"sqlite:///{tmp_path / 'store.db'}"
    logger = MLflowLogger(uri=uri, name="one", config={"algorithm": "BC"})
    for line in LINES:
        logger(line)
    logger.close()
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("mcetm").experiment_id])
    assert run.data.params == {"algorithm": "BC"}
    assert run.info.status == "FINISHED"
    for name, step, value in FLAT:
        assert value in [m.value for m in client.get_metric_history(run.info.run_id, name) if m.step == step]


def small_log(folder: Path) -> Path:
    path = folder / "log.npz"
    Transitions.from_arrays(**random_fields((20,) * 12)).save(path)
    return path


def test_a_run_logs_where_it_is_told_to(tmp_path: Path) -> None:
    settings = ["algorithm.steps=20", "algorithm.width=8", "algorithm.depth=1", "algorithm.batch_size=8"]
    run = tmp_path / "run"
    command = ["train", "--dataset", str(small_log(tmp_path)), "--algo", "bc", "--seeds", "2"]
    assert main([*command, "--out", str(run), "--log", "csv", "--set", *settings]) == 0
    (row,) = rows(run / "metrics.csv")
    assert int(row["step"]) == 20
    line = json.loads((run / "metrics.jsonl").read_text())
    np.testing.assert_allclose([float(row["loss/0"]), float(row["loss/1"])], line["loss"])


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

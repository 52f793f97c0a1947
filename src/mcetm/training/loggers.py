"""Callbacks that send the metrics of a training elsewhere: CSV, JSON lines, TensorBoard, W&B, MLflow.

Each gets the metrics of every chunk of steps. A metric with a number for each seed or member becomes one
series for each, such as `loss/0`. A training that goes on from a checkpoint logs some steps again: in files
and in TensorBoard they replace what was there. Weights & Biases and MLflow begin another run then.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import io
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from mcetm.documents import FileError, read_bytes
from mcetm.errors import UserError
from mcetm.files import append_text, make_folder, write_text
from mcetm.formats import first_clause
from mcetm.training.metrics import MetricsFile

__all__ = [
    "CSVLogger",
    "JSONLinesLogger",
    "LoggerName",
    "MLflowLogger",
    "TensorBoardLogger",
    "WandbLogger",
    "make_logger",
    "require_logger",
]

LoggerName = Literal["csv", "tensorboard", "wandb", "mlflow"]
_NEEDS = {"tensorboard": "tensorboardX", "wandb": "wandb", "mlflow": "mlflow"}
"""What each logger imports, and only when it is made."""


@runtime_checkable
class Logger(Protocol):
    """A callback that may have to be told that the training is over."""

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Log the metrics of a chunk of steps."""
        ...

    def close(self) -> None:
        """The training is over."""
        ...


def flat(line: Mapping[str, Any]) -> dict[str, float]:
    """One number for each name; the entries of lists get names of their own."""
    found: dict[str, float] = {}
    for name, value in line.items():
        if isinstance(value, list):
            found |= flat({f"{name}/{i}": part for i, part in enumerate(value)})
        else:
            found[name] = value
    return found


class JSONLinesLogger:
    """A line of JSON for each chunk; lists stay lists. A run's own `metrics.jsonl` is such a file."""

    def __init__(self, path: str | Path) -> None:
        self._file, self._begun = MetricsFile(Path(path)), False

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Add a line."""
        if not self._begun:
            self._file.rewind(line["step"] - 1)
            self._begun = True
        self._file.append(line)

    def close(self) -> None:
        """Every line is in the file already."""


class CSVLogger:
    """A row for each chunk; a metric that comes later gets a column then, empty in the rows above."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._columns: list[str] | None = None

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Add a row."""
        row = flat(line)
        if self._columns is None:
            self._begin(row["step"])
        columns = self._columns or []
        if more := [name for name in row if name not in columns]:
            rows = self._rows()
            self._columns = columns = [*columns, *more]
            self._write(rows)
        append_text(self._path, _csv([[row.get(name, "") for name in columns]]))

    def close(self) -> None:
        """Every row is in the file already."""

    def _begin(self, step: float) -> None:
        """Keep what was logged before this step, and nothing of what a killed training did after it."""
        rows = self._rows()
        self._columns = list(rows[0]) if rows else []
        kept = [row for row in rows if _number(self._path, row) < step]
        if len(kept) < len(rows):
            self._write(kept)

    def _rows(self) -> list[dict[str, str]]:
        if not self._path.exists():
            return []
        try:
            text = read_bytes(self._path).decode()
        except UnicodeDecodeError:
            raise FileError(self._path, "it is not UTF-8") from None
        rows = list(csv.DictReader(io.StringIO(text)))
        if text and not text.startswith("step"):
            raise FileError(self._path, "it is no log of metrics, whose first column is 'step'")
        return [{name: value or "" for name, value in row.items() if name} for row in rows]

    def _write(self, rows: list[dict[str, str]]) -> None:
        columns = self._columns or []
        write_text(self._path, _csv([columns, *([row.get(name, "") for name in columns] for row in rows)]))


def _number(path: Path, row: Mapping[str, str]) -> float:
    try:
        return float(row["step"])
    except ValueError:
        raise FileError(path, f"it has {row['step']!r:.50} for a step") from None


def _csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


class TensorBoardLogger:
    """Event files in a folder; look at them with `tensorboard --logdir FOLDER`."""

    def __init__(self, folder: str | Path) -> None:
        require_logger("tensorboard")
        self._folder, self._writer = Path(folder), None

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Add a point to each curve."""
        numbers = flat(line)
        step = int(numbers.pop("step"))
        if self._writer is None:
            make_folder(self._folder)
            module = importlib.import_module("tensorboardX")
            self._writer = module.SummaryWriter(str(self._folder), purge_step=step)
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


class WandbLogger:
    """A run of Weights & Biases; `mode="offline"`, or WANDB_MODE=offline, keeps it on this machine."""

    def __init__(
        self,
        project: str = "mcetm",
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        mode: Literal["online", "offline", "disabled"] | None = None,
    ) -> None:
        require_logger("wandb")
        self._options = {"project": project, "name": name, "config": dict(config or {}), "mode": mode}
        self._folder, self._run = None if folder is None else Path(folder), None

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Log the numbers at their step."""
        numbers = flat(line)
        step = int(numbers.pop("step"))
        if self._run is None:
            if self._folder is not None:
                make_folder(self._folder)
            place = None if self._folder is None else str(self._folder)
            with _said("Weights & Biases"):
                self._run = importlib.import_module("wandb").init(dir=place, **self._options)
        self._run.log(numbers, step=step)

    def close(self) -> None:
        """Say that the run is over."""
        if self._run is not None:
            self._run.finish()


class MLflowLogger:
    """A run in MLflow's store: `uri` (such as `sqlite:///mlflow.db`), or what MLFLOW_TRACKING_URI says."""

    def __init__(
        self,
        experiment: str = "mcetm",
        *,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        uri: str | None = None,
    ) -> None:
        require_logger("mlflow")
        self._experiment, self._name, self._uri = experiment, name, uri
        self._config = dict(config or {})
        self._client: Any = None
        self._run = ""

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Log the numbers at their step."""
        numbers, now = flat(line), int(1000 * time.time())
        step = int(numbers.pop("step"))
        with _said("MLflow"):
            client = self._client or self._begin()
        metric = importlib.import_module("mlflow.entities").Metric
        metrics = [metric(name, float(value), now, step) for name, value in numbers.items()]
        for i in range(0, len(metrics), 500):  # a batch may have a thousand
            with _said("MLflow"):
                client.log_batch(self._run, metrics=metrics[i : i + 500])

    def _begin(self) -> Any:
        self._client = importlib.import_module("mlflow").MlflowClient(tracking_uri=self._uri)
        found = self._client.get_experiment_by_name(self._experiment)
        number = self._client.create_experiment(self._experiment) if found is None else found.experiment_id
        self._run = self._client.create_run(number, run_name=self._name).info.run_id
        for name, value in self._config.items():
            self._client.log_param(self._run, name, str(value)[:500])
        return self._client

    def close(self) -> None:
        """Say that the run is over."""
        if self._client is not None:
            self._client.set_terminated(self._run)


@contextlib.contextmanager
def _said(service: str) -> Iterator[None]:
    """What a service does not do is the user's to hear, in one sentence."""
    try:
        yield
    except Exception as error:  # each has its own, and what lies below them too
        raise UserError(f"{service} cannot be used: {first_clause(error)}.") from None


def require_logger(name: str) -> None:
    """Refuse a logger whose package is not here, before anything starts."""
    if name not in get_args(LoggerName):
        raise UserError(f"There is no logger '{name}'; there are {', '.join(get_args(LoggerName))}.")
    package = _NEEDS.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        raise UserError(
            f'Logging to {name} needs {package}, which is not installed: pip install "mcetm[{name}]".'
        )


def make_logger(name: LoggerName, folder: Path, *, title: str, config: Mapping[str, Any]) -> Logger:
    """The logger of a training that is kept in a folder, by its name."""
    require_logger(name)
    if name == "csv":
        return CSVLogger(folder / "metrics.csv")
    if name == "tensorboard":
        return TensorBoardLogger(folder / "tensorboard")
    if name == "wandb":
        return WandbLogger(name=title, config=config, folder=folder)
    uri = None if os.environ.get("MLFLOW_TRACKING_URI") else f"sqlite:///{folder.resolve() / 'mlflow.db'}"
    return MLflowLogger(name=title, config=config, uri=uri)

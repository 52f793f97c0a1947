"""What a run writes about its outcome, as schemas: `results.json`, `environment.json`, `seconds.json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from mcetm.data.card import Card
from mcetm.documents import (
    Checksum,
    Count,
    Finite,
    Label,
    Name,
    Record,
    Text,
    checked,
    parse,
    read_bytes,
    read_json,
)
from mcetm.evaluation.comparison import Curve
from mcetm.files import write_json

Returns = Annotated[list[Finite], Field(min_length=1)]


class Result(Record):
    """What the seeds of one algorithm reached."""

    returns: Returns
    """Mean return of each seed."""
    mean: Finite | None = None
    std: Finite | None = None
    score: Finite | None = None
    diagnosis: dict[Text, list[Finite]] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Result:
        mean = sum(self.returns) / len(self.returns)
        if self.mean is not None and not math.isclose(self.mean, mean, rel_tol=1e-6, abs_tol=1e-6):
            raise ValueError(f"has the mean {self.mean:g}, and that of its returns is {mean:g}")
        return self


class Results(Record):
    """The table of a finished run."""

    dataset: Text
    data_return: Finite
    """Mean return of the data's own episodes."""
    seeds: Annotated[list[Count], Field(min_length=1)]
    algorithms: Annotated[dict[Label, Result | None], Field(min_length=1)]
    """In order, the run's own last; None where there was no environment to measure returns in."""

    @model_validator(mode="after")
    def _fits(self) -> Results:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("has a seed twice")
        for name, result in self.algorithms.items():
            if result is not None and len(result.returns) != len(self.seeds):
                raise ValueError(f"needs one return of {name} for each of {len(self.seeds)} seeds")
        return self

    @property
    def own(self) -> str:
        """The run's own algorithm."""
        return list(self.algorithms)[-1]


class Measured(Record):
    """Where returns were measured."""

    task: Name
    environment: Text
    module_file: Name | None = None
    """The file of the user's own module that the task's name begins with."""


class Environment(Record):
    """What a result was made with; what else is written there is for people."""

    model_config = ConfigDict(extra="allow")

    dataset_checksum: Checksum | None = None
    measured_in: Measured | None = None
    """None where there was no environment, or in runs of earlier versions."""


Seconds = dict[Text, Annotated[Finite, Field(ge=0)]]
"""How long each stage took."""


def read_results(folder: Path) -> Results:
    """The table of a finished run."""
    return read_json(folder / "results.json", Results)


def read_environment(folder: Path) -> Environment:
    """What a run was made with, as far as it says."""
    path = folder / "environment.json"
    return read_json(path, Environment) if path.exists() else Environment()


def read_module_file(folder: Path) -> str | None:
    """The file of the user's own module that a run's task was in."""
    measured = read_environment(folder).measured_in
    return None if measured is None else measured.module_file


def write_card(folder: Path, card: Card) -> None:
    """Keep the dataset card of a run's log, so that the run can be cited from its folder alone."""
    write_json(folder / "card.json", card.to_dict())


def read_card(folder: Path) -> Card | None:
    """The dataset card of a run's log; runs of earlier versions have none."""
    path = folder / "card.json"
    if not path.exists():
        return None
    content = parse(path, read_bytes(path, largest=2**26))
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if isinstance(metadata, dict):  # JSON knows no infinity
        for name, endless in (("action_low", -math.inf), ("action_high", math.inf)):
            if isinstance(bounds := metadata.get(name), list):
                metadata[name] = [endless if bound is None else bound for bound in bounds]
    return checked(path, content, Card)


def read_seconds(path: Path) -> dict[str, float]:
    """How long each stage took so far."""
    return read_json(path, Seconds) if path.exists() else {}


def learning_curve(history: Sequence[dict[str, Any]], seeds: int) -> Curve | None:
    """Returns while learning, out of a run's metrics; None where nothing was evaluated."""
    lines = [line for line in history if len(np.atleast_1d(line.get("return", ()))) == seeds]
    if not lines:
        return None
    returns = np.array([np.atleast_1d(line["return"]) for line in lines], np.float64)
    return Curve(np.array([line["step"] for line in lines]), returns)

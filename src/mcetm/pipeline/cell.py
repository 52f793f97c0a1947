"""A cell of a table: one algorithm with its settings on one log, some seeds in one world, one small file.

A file's name has the hash of the settings and of the data, so that a cell is never trained twice and never
taken for another. A cell that was stopped goes on where it was; one that another process is training is left
to it. Cells that need the same world share it: it is trained once. Whatever a table says of a cell is read
from its file alone.

    cells/NAME.json     what was found
    runs/NAME/          the run, without its checkpoints once it is finished
    worlds/HASH/        models that several cells learn in
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from mcetm.agents.policy import load_policy
from mcetm.data.transitions import Transitions
from mcetm.documents import Checksum, Count, Finite, Label, Record, Text, read_json
from mcetm.errors import UserError
from mcetm.evaluation.comparison import Curve, Entry
from mcetm.evaluation.returns import evaluate_policies
from mcetm.files import write_json
from mcetm.pipeline.config import TrainConfig, name_of, plain_of
from mcetm.pipeline.lock import locked
from mcetm.pipeline.models import train_models
from mcetm.pipeline.results import Seconds, learning_curve, read_seconds
from mcetm.pipeline.source import read_log
from mcetm.pipeline.stages import Stages
from mcetm.pipeline.train import seeds_of, train_run
from mcetm.tasks.registry import ReferenceScores, get_task
from mcetm.training.metrics import MetricsFile

FORMAT = 1
EVALUATION_SEED = 1_000
"""Of the environments that finished policies are measured in: no training looks at these starts."""
_BESIDE = ("dataset", "columns", "task", "models_from", "baselines", "label", "preset")
"""Settings that do not change what is found: where data and models lie, what else is trained, names."""


class Scale(Record):
    """The returns that are 0 and 100 on the normalised scale."""

    random: Finite
    expert: Finite
    origin: Text


class CellResult(Record):
    """What is known of a cell: all that its table, figures and page are made of."""

    format: Literal[1] = FORMAT
    key: Text
    """The hash of its settings, and of how it is measured."""
    log: Text
    """What tables call the data."""
    label: Label
    """What the table that it was first trained for calls the algorithm."""
    task: Text
    scale: Scale | None
    """None where the task has no reference returns."""
    data: Checksum
    data_return: Finite
    """Mean return of the data's own episodes."""
    rows: Count
    """Transitions of the data."""
    notes: list[Text]
    """What is to be known about the data, such as that they stand in for others."""
    seeds: Annotated[list[Count], Field(min_length=1)]
    world: Count
    """The seed of the world that all of them share."""
    updates: Count
    returns: Annotated[list[Annotated[list[Finite], Field(min_length=1)]], Field(min_length=1)]
    """Of every episode of the last policy, by seed."""
    lengths: list[list[Count]]
    """Steps of those episodes."""
    curve_steps: list[Count]
    curve: list[list[Finite]]
    """Mean returns while learning: a row for each of the steps, a column for each seed."""
    diagnosis: dict[Text, list[Finite]] | None
    seconds: Seconds
    """By stage; those of the world begin with `world: `."""
    settings: dict[str, Any]
    environment: dict[str, Any]
    """Versions, hardware and the commit."""

    @model_validator(mode="after")
    def _fits(self) -> CellResult:
        seeds = len(self.seeds)
        if any(len(rows) != seeds for rows in (self.returns, self.lengths, *self.curve)):
            raise ValueError(f"needs one row of every number for each of {seeds} seeds")
        if len(self.curve) != len(self.curve_steps):
            raise ValueError("has a curve that is not as long as its steps")
        return self

    @property
    def means(self) -> np.ndarray:
        """Mean return of each seed's policy."""
        return np.array([np.mean(episodes) for episodes in self.returns])

    @property
    def references(self) -> ReferenceScores | None:
        """What its returns are measured against."""
        return None if self.scale is None else ReferenceScores(**self.scale.model_dump())

    @property
    def entry(self) -> Entry:
        """As an entry of a comparison."""
        curve = Curve(np.array(self.curve_steps), np.array(self.curve)) if self.curve else None
        return Entry(
            seeds=tuple(self.seeds),
            returns=tuple(self.means.tolist()),
            updates=(self.updates,),
            curve=curve,
            worlds=(self.world,) * len(self.seeds),
        )


@dataclass(frozen=True)
class Cell:
    """What is to be found out, and what tables call it."""

    config: TrainConfig
    log: str
    """What tables call the data, wherever they lie."""
    episodes: int = 20
    """Episodes of each seed's last policy."""

    @property
    def key(self) -> str:
        """The hash of all that decides, with the data, what the cell finds."""
        settings = {name: part for name, part in plain_of(self.config).items() if name not in _BESIDE}
        return _hash({**settings, "episodes": self.episodes})

    def name(self, log: Transitions) -> str:
        """What its file and its run are called, on these data."""
        words = f"{self.log} {name_of(type(self.config.algorithm))} {self.config.seed}"
        plain = re.sub(r"[^\w.+-]+", "-", words, flags=re.ASCII).strip("-").lower()
        return f"{plain}-{_hash([self.key, log.checksum])}"

    def file(self, folder: Path, log: Transitions) -> Path:
        """Where its result is, or will be."""
        return folder / "cells" / f"{self.name(log)}.json"


def read_cell(path: Path) -> CellResult:
    """The result in a file, checked."""
    return read_json(path, CellResult)


def read_cells(folder: Path) -> list[CellResult]:
    """All results of a folder, in the order of their names."""
    return [read_cell(path) for path in sorted((folder / "cells").glob("*.json"))]


def run_cell(cell: Cell, folder: Path, log: Transitions | None = None) -> CellResult:
    """The result of a cell, trained or gone on with if it is not there; the run's folder lies beside it.

    `BusyError` says that another process is at this cell, or at the world it needs.
    """
    config = replace(cell.config, baselines=(), models_from=None)
    log = read_log(config) if log is None else log
    if log.metadata.task is None:
        raise UserError(f"{cell.log} has no task to measure returns in; name one with --task.")
    file = cell.file(folder, log)
    if file.exists():
        return read_cell(file)
    world_seconds = {}
    if config.model is not None:
        world = _world(config, folder / "worlds", log)
        world_seconds = {
            f"world: {name}": took for name, took in read_seconds(world / "seconds.json").items()
        }
        config = replace(config, models_from=str(world.resolve()))
    place = folder / "runs" / file.stem
    if (place / "config.json").exists():
        # Equal but for what the name leaves out: where data and models lie may have changed since.
        with locked(place):
            write_json(place / "config.json", plain_of(config))
    run = train_run(config, place, log)
    task, outcome = get_task(log.metadata.task), run.outcomes[-1]
    policies = [load_policy(place / "policy" / f"seed-{seed}").network for seed in seeds_of(config)]
    found = evaluate_policies(task, policies, episodes=cell.episodes, seed=EVALUATION_SEED)
    curve = learning_curve(MetricsFile(place / "metrics.jsonl").read(), config.seeds)
    scores = task.scores
    result = CellResult(
        key=cell.key,
        log=cell.log,
        label=config.label,
        task=task.name,
        scale=None
        if scores is None
        else Scale(random=scores.random, expert=scores.expert, origin=scores.origin),
        data=log.checksum,
        data_return=float(log.episode_returns.mean()),
        rows=len(log),
        notes=list(log.metadata.notes),
        seeds=seeds_of(config),
        world=config.seed,
        updates=config.algorithm.updates,
        returns=[list(evaluation.returns) for evaluation in found],
        lengths=[list(evaluation.lengths) for evaluation in found],
        curve_steps=[] if curve is None else curve.updates.tolist(),
        curve=[] if curve is None else curve.returns.tolist(),
        diagnosis=outcome.diagnosis,
        seconds={**world_seconds, **read_seconds(place / "seconds.json")},
        settings=plain_of(config),
        environment=read_json(place / "environment.json", dict[str, Any]),
    )
    write_json(file, result.model_dump())
    # They are most of what a run takes on disk, and the result is safe.
    shutil.rmtree(place / "checkpoints", ignore_errors=True)
    return result


def _world(config: TrainConfig, worlds: Path, log: Transitions) -> Path:
    """The folder of the models that a cell learns in, trained if they are not there."""
    plain = plain_of(config)
    settings = {name: plain[name] for name in ("model", "world", "seed", "holdout")}
    settings |= {"task": log.metadata.task, "data": log.checksum}
    place = worlds / _hash(settings)
    finished = place / "world.json"
    if finished.exists():
        return place
    with locked(place):
        if not finished.exists():
            train, holdout = log.split(config.holdout, seed=config.seed)
            task = None if log.metadata.task is None else get_task(log.metadata.task)
            stages = Stages(place / "seconds.json")
            train_models(config, train, holdout, task, folder=place / "models", stages=stages)
            write_json(finished, settings)
    return place


def _hash(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

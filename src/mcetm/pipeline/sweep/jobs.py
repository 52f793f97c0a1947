"""A cell of a list as plain data, so that any process on any machine can train it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.data.columns import Columns
from mcetm.data.transitions import Transitions
from mcetm.documents import Checksum, Count, FileName, Record, Text, read_json
from mcetm.envs import described_columns, load_dataset
from mcetm.errors import UserError
from mcetm.estimates import EstimateSettings
from mcetm.files import write_json
from mcetm.pipeline.cell import Cell
from mcetm.pipeline.config import config_of, plain_of
from mcetm.pipeline.source import located
from mcetm.pipeline.train import seeds_of
from mcetm.settings import from_plain, to_plain

_SEED = 0
"""Which episodes a part of a log has is the same for all cells."""
_FILES = (".csv", ".h5", ".hdf5", ".npz", ".parquet")


@dataclass(frozen=True)
class Planned:
    """A cell that somebody wants, and its place in a table."""

    cell: Cell
    source: str
    """The log, of which the cell may have a share."""
    label: str
    """What the table calls it."""
    share: float = 1.0
    system: str = ""
    """What is called so whatever values are tried in it; one of its labels is chosen."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The settings that are tried."""
    otherwise: EstimateSettings | None = None
    """How its policies' returns are estimated where there is no environment to measure them in."""


class Job(Record):
    """A cell, and what must be known of it before its log is read."""

    name: FileName
    """Of its file and its run."""
    label: Text
    """What tables call it."""
    system: Text
    """What several cells are called that differ in the values that are tried."""
    values: dict[str, Any]
    """The settings that are tried."""
    log: Text
    """What tables call the data."""
    key: Text
    seeds: list[Count]
    updates: Count
    config: dict[str, Any]
    episodes: Count
    estimate: dict[str, Any] | None
    data: Checksum
    """Of the log: a machine that has another one under its name is told so."""
    world: FileName | None
    """The models that it learns in; others may wait for the same."""

    @property
    def cell(self) -> Cell:
        """The cell itself."""
        estimate = None if self.estimate is None else from_plain(EstimateSettings, self.estimate, "estimate")
        return Cell(config_of(self.config), self.log, self.episodes, estimate)

    def result(self, folder: Path) -> Path:
        """Where its result is, or will be."""
        return folder / "cells" / f"{self.name}.json"

    def run(self, folder: Path) -> Path:
        """The folder of its run."""
        return folder / "runs" / self.name

    def claim(self, folder: Path) -> Path:
        """A folder that is locked while some process is at this cell."""
        return folder / "running" / self.name

    def output(self, folder: Path) -> Path:
        """What its training has printed, where it was not for a person's eyes."""
        return folder / "output" / f"{self.name}.txt"

    def world_file(self, folder: Path) -> Path | None:
        """The file that is there once its models are trained."""
        return None if self.world is None else folder / "worlds" / self.world / "world.json"

    def read_log(self) -> Transitions:
        """Its log, which must be the one it was planned for."""
        config = self.config
        log = _read(config["dataset"], config["task"], json.dumps(config["columns"]), None)
        if log.checksum != self.data:
            raise UserError(f"{config['dataset']} is another log here than where this was planned.")
        return log


@lru_cache(maxsize=2)  # a million rows each; lists go through systems on one log after the other
def _read(source: str, task: str | None, columns: str, folder: Path | None) -> Transitions:
    """A log that can be learned from; whoever made the list has named its task."""
    plain = json.loads(columns)
    described = None if plain is None else from_plain(Columns, plain, "columns")
    log = load_dataset(source, folder=folder, task=task, columns=described)
    log.require("reward", "action")
    return log


def jobs_of(
    planned: Iterable[Planned], folder: Path, *, data: Path | None = None, portable: bool = False
) -> list[Job]:
    """The jobs of a plan, each once; their logs are read, and what cannot be used is refused now.

    `data` is a folder with D4RL's own files. A `portable` list has all logs beside it, for machines that
    share nothing but this folder.
    """
    jobs: dict[str, Job] = {}
    for one in planned:
        source, log = _source(one, folder, data, portable)
        config = replace(one.cell.config, dataset=source, baselines=(), models_from=None)
        columns = None
        if source == located(one.source):
            columns = config.columns or described_columns(source)
        cell = replace(one.cell, config=replace(config, columns=columns))
        if log.metadata.task is None and cell.estimate is None:
            cell = replace(cell, estimate=one.otherwise)
        if log.metadata.task is None and cell.estimate is None:
            raise UserError(
                f"{cell.log} has no environment to measure returns in; name one, or have them estimated."
            )
        job = Job(
            name=cell.name(log),
            label=one.label,
            system=one.system,
            values=dict(one.values),
            log=cell.log,
            key=cell.key,
            seeds=seeds_of(cell.config),
            updates=cell.config.algorithm.updates,
            config=plain_of(cell.config),
            episodes=cell.episodes,
            estimate=None if cell.estimate is None else to_plain(cell.estimate),
            data=log.checksum,
            world=cell.world(log),
        )
        jobs.setdefault(job.name, job)
    return list(jobs.values())


def write_jobs(folder: Path, jobs: Sequence[Job]) -> None:
    """Keep the list, for whoever asks how far it is."""
    write_json(folder / "jobs.json", [job.model_dump() for job in jobs])


def read_jobs(folder: Path) -> list[Job]:
    """The list that was begun last."""
    path = folder / "jobs.json"
    if not path.exists():
        raise UserError(f"{folder} is not a sweep: there is no jobs.json in it.")
    return read_json(path, list[Job])


def shared_name(log: str, share: float = 1.0) -> str:
    """What a log, or a part of it, is called: a file by its name alone."""
    name = Path(log).stem if Path(log).suffix in _FILES else log
    return name if share == 1.0 else f"{name} {100 * share:g} %"


def _source(one: Planned, folder: Path, data: Path | None, portable: bool) -> tuple[str, Transitions]:
    """Where a job finds its log, and the log."""
    config = one.cell.config
    columns = config.columns or described_columns(one.source)
    plain = "null" if columns is None else json.dumps(to_plain(columns))
    whole = _read(one.source, config.task, plain, data)
    if one.share == 1.0:
        source, place = whole.metadata.source, located(one.source)
        there = source if data is not None and Path(source).exists() else place
        if not portable or Path(there).exists():
            return there, whole
        part = whole
    else:
        part = thinned(whole, one.share)
    called = f"{shared_name(Path(one.source).name, one.share)}-{part.checksum[:12]}.npz".replace(" %", "")
    path = folder / "logs" / called.replace(" ", "-").replace(":", "-")
    if not path.exists():
        part.save(path)
    return str(path.resolve()), part


def thinned(log: Transitions, share: float) -> Transitions:
    """Whole episodes, drawn at random until they have this share of the rows."""
    order = np.random.default_rng(_SEED).permutation(log.num_episodes)
    rows = np.cumsum(log.episode_lengths[order])
    count = int(np.searchsorted(rows, share * len(log))) + 1
    if count >= log.num_episodes:
        raise UserError(f"{log.metadata.source} has too few episodes for {100 * share:g} % of it.")
    return log.select_episodes(np.sort(order[:count]))

"""How far a list of cells is, from its folder alone: what is done, runs, has failed, and how long still."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mcetm.documents import require_plain
from mcetm.errors import UserError
from mcetm.pipeline.cell_result import CellResult, read_cell
from mcetm.pipeline.lock import is_locked
from mcetm.pipeline.sweep.attempt import read_failure
from mcetm.pipeline.sweep.jobs import Job, read_jobs

State = Literal["done", "failed", "running", "stopped", "waiting"]
_TAIL = 4096
"""Bytes at the end of a file of metrics that surely hold its last line."""


@dataclass(frozen=True)
class CellStatus:
    """How far one cell is."""

    job: Job
    state: State
    updates: int = 0
    """Updates of its policy so far, as far as they were noted."""
    failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        said = {"name": self.job.name, "log": self.job.log, "label": self.job.label, "seeds": self.job.seeds}
        return {
            **said,
            "state": self.state,
            "updates": self.updates,
            "of": self.job.updates,
            "failure": self.failure or None,
        }


@dataclass(frozen=True)
class Status:
    """How far everything is."""

    cells: tuple[CellStatus, ...]
    found: dict[str, CellResult]
    """Results by the names of their cells."""

    def count(self, state: State) -> int:
        """How many cells are so."""
        return Counter(cell.state for cell in self.cells)[state]

    @property
    def failures(self) -> list[CellStatus]:
        """Cells that have failed."""
        return [cell for cell in self.cells if cell.state == "failed"]

    @property
    def seconds_left(self) -> float | None:
        """Time left if as many go on as now; None where none runs, or none has finished to go by."""
        running = self.count("running")
        if not running or not self.found:
            return None
        took: dict[str, list[float]] = {}
        for cell in self.cells:
            if cell.job.name in self.found:
                took.setdefault(cell.job.system, []).append(_seconds(self.found[cell.job.name]))
        usual = float(np.median([seconds for own in took.values() for seconds in own]))
        left = 0.0
        for cell in self.cells:
            if cell.state in ("running", "stopped", "waiting"):
                whole = float(np.median(took[cell.job.system])) if cell.job.system in took else usual
                left += whole * (1.0 - cell.updates / max(1, cell.job.updates))
        return left / running

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        states: tuple[State, ...] = ("done", "failed", "running", "stopped", "waiting")
        return {
            "cells": len(self.cells),
            **{state: self.count(state) for state in states},
            "seconds_left": self.seconds_left,
            "list": [cell.to_dict() for cell in self.cells],
        }


def status_of(folder: Path, jobs: Sequence[Job] | None = None) -> Status:
    """Read how far the cells of a folder are; nothing is changed and nobody is disturbed."""
    jobs = read_jobs(folder) if jobs is None else jobs
    found = {job.name: read_cell(job.result(folder)) for job in jobs if job.result(folder).exists()}
    return Status(tuple(_cell(folder, job, job.name in found) for job in jobs), found)


def _cell(folder: Path, job: Job, done: bool) -> CellStatus:
    if done:
        return CellStatus(job, "done", job.updates)
    if (failure := read_failure(folder, job)) is not None:
        return CellStatus(job, "failed", failure=failure)
    updates = _updates(job.run(folder) / "metrics.jsonl")
    if is_locked(job.claim(folder)):
        return CellStatus(job, "running", updates)
    begun = job.run(folder).exists() or job.claim(folder).exists()
    return CellStatus(job, "stopped" if begun else "waiting", updates)


def _updates(path: Path) -> int:
    """The last step in a file of metrics that may just be written, or be anything."""
    try:
        require_plain(path)
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            lines = file.read(_TAIL).splitlines()
    except (OSError, UserError):
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    return 0


def _seconds(result: CellResult) -> float:
    """What a cell took without its models, which others may have trained."""
    return sum(took for name, took in result.seconds.items() if not name.startswith("world: "))

"""Training the cells of a plan: several workers, one list, and a lock on each cell instead of a queue.

Every worker goes through the same list. It leaves out what is done, what has failed and what another one is
at, and goes through it again until nothing is left. So a worker that is killed takes nothing with it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcetm import UserError
from mcetm.documents import FileError
from mcetm.files import write_text
from mcetm.pipeline import BusyError, Cell, run_cell
from mcetm_experiments.benchmark.logs import with_log
from mcetm_experiments.benchmark.plan import Planned, planned, read_plan

if TYPE_CHECKING:
    from mcetm_experiments.benchmark.settings import BenchmarkStudy

_PAUSE = 5.0
"""Seconds before a worker looks again at what others are at."""


def train_cells(settings: BenchmarkStudy) -> None:
    """Train all that is missing, in this process or in several."""
    forget_failures(settings.out)
    until = None if settings.minutes is None else time.time() + 60.0 * settings.minutes
    if settings.jobs == 1:
        work(settings, until)
        return
    # Each would take most of a GPU's memory for itself.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    spawned = multiprocessing.get_context("spawn")
    workers = [spawned.Process(target=work, args=(settings, until)) for _ in range(settings.jobs)]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.terminate()
    if any(worker.exitcode != 0 for worker in workers):
        raise UserError(
            "A worker has ended before its work was done, perhaps for want of memory; begin again, with "
            "fewer --jobs if this happens once more."
        )


def work(settings: BenchmarkStudy, until: float | None = None) -> None:
    """Train cells until all are done, have failed, or time is over."""
    plan = read_plan(settings.plan)
    todo = [
        one
        for table in plan.chosen(settings.only)
        for one in planned(plan, table, official=settings.data is not None)
    ]
    while todo:
        left = [one for one in todo if not _attempt(one, settings, until)]
        if len(left) == len(todo):
            if until is not None and time.time() > until:
                return
            time.sleep(_PAUSE)
        todo = left


def _attempt(one: Planned, settings: BenchmarkStudy, until: float | None) -> bool:
    """Whether nothing is left to do for this cell."""
    if until is not None and time.time() > until:
        return False
    if failure_file(settings.out, one.cell).exists():
        return True
    try:
        cell, log = with_log(one, settings.out, settings.data)
        known = cell.file(settings.out, log).exists()
        found = run_cell(cell, settings.out, log)
    except BusyError:
        return False
    except FileError:
        raise
    except UserError as error:
        write_text(failure_file(settings.out, one.cell), f"{error}\n")
        print(f"{one.cell.log}, {one.label}, seed {one.cell.config.seed}: failed: {error}", flush=True)
        return True
    if not known:
        mean = sum(found.means) / len(found.means)
        print(f"{found.log}, {found.label}, seeds {found.seeds}: {mean:,.1f}", flush=True)
    return True


def failure_file(out: Path, cell: Cell) -> Path:
    """Where it is said why a cell has no result."""
    log = cell.log.replace("/", "-").replace(" ", "-")
    return out / "failures" / f"{log}-{cell.key}.txt"


def failures(out: Path, cells: Sequence[Cell]) -> dict[str, str]:
    """Why cells have no result, by log, algorithm and seed."""
    return {
        f"{cell.log}, {cell.config.label}, seed {cell.config.seed}": failure_file(out, cell)
        .read_text()
        .strip()
        for cell in cells
        if failure_file(out, cell).exists()
    }


def forget_failures(out: Path) -> None:
    """What has failed may be tried again."""
    for path in (out / "failures").glob("*.txt"):
        path.unlink()

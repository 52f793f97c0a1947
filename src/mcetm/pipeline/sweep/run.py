"""A list of cells on an executor, until nothing is left to do.

The folder is the truth: what has a result is done, what has a failure waits for somebody to ask again, and
everything else is begun or gone on with. So calling again after any accident is always right.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from mcetm.console import progress, say
from mcetm.errors import UserError
from mcetm.pipeline.sweep.attempt import Outcome, forget_failures, note_failure, read_failure
from mcetm.pipeline.sweep.executors import Executor, ExecutorSettings, make_executor
from mcetm.pipeline.sweep.jobs import Job, Planned, jobs_of, write_jobs

PAUSE = 5.0
"""Seconds until a cell is asked for again that another process is at."""
_LOST = 3
"""How often the process of a cell may die before the cell has failed."""
_NO_ROOM = 5
"""How many machines may have no room for a cell."""


@dataclass
class _List:
    """What is left of the cells, and which may begin."""

    folder: Path
    waiting: list[Job]
    running: dict[str, Job] = field(default_factory=dict)
    later: dict[str, float] = field(default_factory=dict)
    """When a cell may be asked for again."""
    lost: dict[str, int] = field(default_factory=dict)
    crowded: dict[str, int] = field(default_factory=dict)
    """How often there was no room for a cell."""

    def take(self, most: int) -> list[Job]:
        """Cells that may begin now; those that share models wait until one of them has trained these."""
        now, taken = time.monotonic(), list[Job]()
        training = {job.world for job in self.running.values()}
        for job in self.waiting:
            if len(taken) >= most:
                break
            file = job.world_file(self.folder)
            if self.later.get(job.name, 0.0) > now or (
                file is not None and job.world in training and not file.exists()
            ):
                continue
            training.add(job.world)
            taken.append(job)
        for job in taken:
            self.waiting.remove(job)
            self.running[job.name] = job
        return taken

    def again(self, job: Job, pause: float) -> None:
        """A cell is to be asked for once more."""
        self.later[job.name] = time.monotonic() + pause
        self.waiting.append(job)


Heard = Callable[[Job, Outcome], None]


def run_planned(
    planned: Iterable[Planned],
    folder: Path,
    settings: ExecutorSettings,
    *,
    data: Path | None = None,
    retry: bool = False,
    minutes: float | None = None,
    heard: Heard | None = None,
) -> list[Job]:
    """Train all of a plan that is missing; with `retry`, what has failed too. `data` has D4RL's own files."""
    if retry:
        forget_failures(folder)
    jobs = jobs_of(planned, folder, data=data, portable=settings.name != "local")
    write_jobs(folder, jobs)
    with closing(make_executor(settings, folder)) as executor:
        run_jobs(jobs, folder, executor, minutes=minutes, heard=heard)
    return jobs


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    executor: Executor,
    *,
    minutes: float | None = None,
    heard: Heard | None = None,
) -> None:
    """Train all that has neither a result nor a failure; `heard` is told of each that is over.

    After so many `minutes` nothing more is begun.
    """
    open_ = [job for job in jobs if not job.result(folder).exists() and read_failure(folder, job) is None]
    work = _List(folder, list(open_))
    until = None if minutes is None else time.monotonic() + 60.0 * minutes
    failed = sum(read_failure(folder, job) is not None for job in jobs)
    with progress("cells", len(jobs), unit="cells", done=len(jobs) - len(open_)) as advance:
        advance(0, note=_note(work, failed))
        while work.waiting or work.running:
            over = until is not None and time.monotonic() > until
            if not over and (ready := work.take(executor.room)):
                executor.submit(ready)
                advance(0, note=_note(work, failed))
            if not work.running:
                if over:
                    return
                time.sleep(min(PAUSE, 1.0))  # others are at what is left, or there is no place for it
            for job, outcome in executor.finished(1.0):
                work.running.pop(job.name, None)
                settled = _settle(work, job, outcome)
                if settled is not None:
                    failed += settled.kind == "failed"
                    advance(1, note=_note(work, failed))
                    if heard is not None:
                        heard(job, settled)


def _note(work: _List, failed: int) -> str:
    running = f"{len(work.running)} running" if work.running else ""
    return ", ".join(filter(None, (running, f"{failed} failed" if failed else "")))


def _settle(work: _List, job: Job, outcome: Outcome) -> Outcome | None:
    """What an outcome means for the list; None where the cell is to be asked for again."""
    if outcome.kind in ("done", "failed"):
        return outcome
    if outcome.kind in ("busy", "gone"):
        work.again(job, PAUSE if outcome.kind == "busy" else 0.0)
        return None
    count = work.lost if outcome.kind == "lost" else work.crowded
    count[job.name] = count.get(job.name, 0) + 1
    if outcome.kind == "no room":
        if not outcome.place or count[job.name] >= _NO_ROOM:
            raise UserError(f"{outcome.words} What is finished is kept; call again to go on.")
        say(f"{job.log}, {job.label}: {outcome.words} It is tried elsewhere.", file=sys.stderr)
    elif count[job.name] >= _LOST:
        words = f"{outcome.words}, {count[job.name]} times."
        words = words[0].upper() + words[1:]
        note_failure(work.folder, job, words)
        return Outcome("failed", words)
    work.again(job, 0.0)
    return None

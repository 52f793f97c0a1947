"""Training one cell of a list: whatever comes of it is an outcome, and what went wrong is one sentence."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcetm.console import one_line
from mcetm.documents import read_bytes
from mcetm.errors import UserError
from mcetm.files import NO_SPACE, NoRoomError, append_text, make_folder, path_kind, write_text
from mcetm.memory import is_shortage
from mcetm.pipeline.cell import run_cell
from mcetm.pipeline.lock import BusyError, locked
from mcetm.pipeline.sweep.jobs import Job, read_jobs

_LONGEST = 1000
"""Characters of what an unexpected error says."""
_LARGEST = 2**20
"""Bytes of a file that holds a sentence."""


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt."""

    kind: Literal["done", "failed", "busy", "no room", "lost", "gone"]
    """`busy` is at another process, and `no room` is for another machine. The process of what is `lost` has
    died; where the whole machine has, it is `gone`, which is no fault of the cell.
    """
    words: str = ""
    place: str = ""
    """Where it was, if that matters for what comes next."""


def attempt(job: Job, folder: Path, *, place: str = "") -> Outcome:
    """Train a cell, or go on with it; a failure is kept, and one that is kept already stays."""
    if not (folder / "jobs.json").exists():
        return _unseen(folder, place)
    if job.result(folder).exists():
        return Outcome("done")
    if failure_file(folder, job).exists():
        return Outcome("failed", read_failure(folder, job) or "")
    try:
        with locked(job.claim(folder)):
            run_cell(job.cell, folder, job.read_log())
        return Outcome("done")
    except BusyError:
        return Outcome("busy")
    except NoRoomError as error:
        return Outcome("no room", str(error), place)
    except UserError as error:
        return _failed(job, folder, str(error), place)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return Outcome("no room", str(error), place)
        traceback.print_exc()
        if is_shortage(error):
            words = "There is not enough memory for it, perhaps because others share it."
            return _failed(job, folder, words, place)
        said = one_line(f"{type(error).__name__}: {error}", _LONGEST)
        return _failed(job, folder, f"{said} (the whole story is in {job.output(folder)})", place)


def attempt_apart(job: Job, folder: Path, *, place: str = "") -> Outcome:
    """The same in a process that nobody watches: what it prints goes to a file."""
    if not (folder / "jobs.json").exists():
        return _unseen(folder, place)
    try:
        with into_file(job.output(folder), place):
            return attempt(job, folder, place=place)
    except UserError as error:  # not even that file can be written
        return Outcome("no room", str(error), place)


def _unseen(folder: Path, place: str) -> Outcome:
    host = socket.gethostname()
    words = f"{host} does not see {folder}; a sweep on several machines needs a folder that all share."
    return Outcome("no room", words, place)


def _failed(job: Job, folder: Path, words: str, place: str) -> Outcome:
    try:
        note_failure(folder, job, words)
    except NoRoomError as error:
        return Outcome("no room", str(error), place)
    return Outcome("failed", words)


def failure_file(folder: Path, job: Job) -> Path:
    """Where it is said why a cell has no result."""
    return folder / "failures" / f"{job.name}.txt"


def note_failure(folder: Path, job: Job, words: str) -> None:
    """Keep why a cell has no result."""
    write_text(failure_file(folder, job), f"{words}\n")


def read_failure(folder: Path, job: Job) -> str | None:
    """Why a cell has no result; None where it has not failed."""
    path = failure_file(folder, job)
    if path_kind(path) == "nothing":
        return None
    words = read_bytes(path, largest=_LARGEST).decode(errors="replace")
    return one_line(words.strip(), _LONGEST)


def failures_in(folder: Path) -> dict[tuple[str, str], str]:
    """Why cells of the list that was begun last have no result, by key and log."""
    if not (folder / "jobs.json").exists():
        return {}
    found = {(job.key, job.log): read_failure(folder, job) for job in read_jobs(folder)}
    return {place: words for place, words in found.items() if words is not None}


def forget_failures(folder: Path) -> None:
    """What has failed may be tried again."""
    for path in (folder / "failures").glob("*.txt"):
        path.unlink()


@contextmanager
def into_file(path: Path, place: str = "") -> Iterator[None]:
    """Send all that this process prints to a file, for as long as it trains there."""
    make_folder(path.parent)
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    node = f", node {place}" if place else ""
    append_text(path, f"{began} UTC, {socket.gethostname()}, process {os.getpid()}{node}\n")
    kept = [os.dup(1), os.dup(2)]
    with path.open("ab") as file:
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
        finally:
            for number, descriptor in zip((1, 2), kept, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)

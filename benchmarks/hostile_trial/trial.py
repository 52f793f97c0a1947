"""One bad input, what became of it, and the processes in which many are tried.

Everything heavy is imported once; each worker is a fork of that. A case that takes too long costs a worker,
and so does one that takes the process with it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import multiprocessing
import os
import re
import resource
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

import mcetm
from mcetm.cli import main

SECONDS = 30.0
"""A case that computes for longer, or waits for so long, hangs, or was accepted and trains on."""
_MEMORY = 12 << 30
_STOP = re.compile(r"(?i)(?<![a-z_.'])(nan|-?inf)(?![a-z_.])")

Expected = Literal["refused", "fine", "either"]


@dataclass
class Place:
    """An empty folder for a case, which is the current one, and the material that all cases share."""

    folder: Path
    material: Path

    def run(self, *arguments: object) -> int:
        """A command, as a person types it; its exit code."""
        return main([str(argument) for argument in arguments])

    def copy(self, name: str, to: str | None = None) -> Path:
        """A run or file of the material, to be damaged."""
        target, source = self.folder / (to or name), self.material / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)
        return target

    def write(self, name: str, content: str | bytes) -> Path:
        """A file with this content."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


@dataclass(frozen=True)
class Case:
    """A bad input: what is done with it, and what should come of it."""

    group: str
    name: str
    act: Callable[[Place], Any]
    """The command's exit code; of a call of the library, any other value."""
    expect: Expected = "refused"
    words: tuple[str, ...] = ()
    """A good refusal names one of them: the file, the field, the setting."""
    prepare: Callable[[Place], Any] = field(default=lambda place: None)
    """Files that are there before; whatever is there afterwards besides was left behind by a refusal."""


def command(
    group: str,
    name: str,
    *arguments: object,
    expect: Expected = "refused",
    words: Sequence[str] = (),
    prepare: Callable[[Place], Any] = lambda place: None,
) -> Case:
    """A case that is one command; `{m}` stands for the folder of the material."""

    def act(place: Place) -> int:
        return place.run(*(str(part).replace("{m}", str(place.material)) for part in arguments))

    return Case(group, name, act, expect, tuple(words), prepare)


def attempt(case: Case, place: Place) -> dict[str, Any]:
    """Do it, and say what became of it."""
    out, err = io.StringIO(), io.StringIO()
    shutil.rmtree(place.folder, ignore_errors=True)
    place.folder.mkdir(parents=True)
    os.chdir(place.folder)
    try:
        case.prepare(place)
    except Exception:
        return {
            "group": case.group,
            "name": case.name,
            "is": "broken case",
            "out": "",
            "err": traceback.format_exc(),
        }
    before = _contents(place.folder)
    raised = ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = case.act(place)
        except SystemExit as stop:  # how tyro refuses what cannot be parsed
            code = stop.code
        except (mcetm.UserError, ValidationError) as refusal:
            code = 2
            print(f"mcetm: {refusal}", file=sys.stderr)
        except BaseException:
            code, raised = 1, traceback.format_exc()
    os.chdir(place.material)
    left = sorted(_contents(place.folder) - before)
    found = {"group": case.group, "name": case.name, "expect": case.expect}
    found |= {"out": out.getvalue()[-3000:], "err": err.getvalue()[-3000:]}
    code = 0 if not isinstance(code, int) or isinstance(code, bool) else code
    if code == 1 and not raised and "failed: " in out.getvalue():
        return {**found, "is": "refused"}  # a benchmark goes on with its other cells, and says so
    if code == 1 and not raised and " cells done" in out.getvalue():
        code = 0  # a sweep whose time is over: its plan was taken
    if raised or "Traceback (most recent call last)" in err.getvalue() or code not in (0, 2):
        return {**found, "is": "traceback", "err": (raised or err.getvalue())[-3000:]}
    if code == 2:
        if case.expect == "fine":
            return {**found, "is": "refused although good"}
        kept = [name for name in left if not name.startswith((".cache", ".config", "__pycache__"))]
        began = case.expect == "either" and any(name.endswith("config.json") for name in kept)
        if kept and not began:  # a run that learned something before it was stopped may stay
            return {**found, "is": "left behind", "left": kept[:10]}
        return {**found, "is": "refused" if _is_clear(case, err.getvalue()) else "weak"}
    if case.expect == "refused":
        return {**found, "is": "accepted"}
    if where := _not_finite(out.getvalue(), place.folder, before):
        return {**found, "is": "not finite", "left": [where]}
    return {**found, "is": "fine"}


def _is_clear(case: Case, said: str) -> bool:
    """One sentence (or tyro's box, or a list of faults) that can be read, and names what is wrong."""
    lines = said.strip().split("\n")
    boxed = "for full helptext" in said.lower() and "<class" not in said  # tyro's own way to say it
    readable = all(line.isprintable() for line in lines) and len(said) < 3500
    if not readable or (not boxed and not any(line.startswith("mcetm: ") for line in lines)):
        return False
    return not case.words or any(word in said for word in case.words)


def _not_finite(out: str, folder: Path, before: set[str]) -> str:
    """Where a number stands that is none."""
    if _STOP.search(out):
        return "the output"
    for path in folder.rglob("*.json*"):
        if str(path.relative_to(folder)) not in before and path.is_file():
            for line in (
                path.read_text(errors="replace").split("\n")
                if path.suffix == ".jsonl"
                else [path.read_text()]
            ):
                if line.strip() and _has_nan(json.loads(line)):
                    return str(path.relative_to(folder))
    return ""


def _has_nan(content: Any) -> bool:
    if isinstance(content, dict):
        return any(map(_has_nan, content.values()))
    if isinstance(content, list):
        return any(map(_has_nan, content))
    return isinstance(content, float) and not math.isfinite(content)


def _contents(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _serve(pipe: Any, cases: Sequence[Case], folder: Path, material: Path) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    with Path(os.devnull).open("w") as silent:  # what is said below Python's own streams
        os.dup2(silent.fileno(), 1)
        os.dup2(silent.fileno(), 2)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    while (number := pipe.recv()) is not None:
        pipe.send(attempt(cases[number], Place(folder, material)))
    os._exit(0)


def _end_with(parent: int) -> None:
    """A worker outlives nobody who waits for it."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


class _Worker:
    def __init__(self, cases: Sequence[Case], folder: Path, material: Path) -> None:
        self.pipe, other = multiprocessing.get_context("fork").Pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=_serve, args=(other, cases, folder, material), daemon=False
        )
        self.process.start()
        other.close()

    def ask(self, number: int) -> tuple[str, dict[str, Any] | None]:
        """What became of a case, or how the worker ended."""
        try:
            self.pipe.send(number)
            if not self._answers():
                self.process.kill()
                self.process.join()
                return "hang", None
            return "", self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return f"crash ({self.process.exitcode})", None

    def _answers(self) -> bool:
        """Wait for an answer; the clock is that of the processor, as others may be at work here too."""
        began = used = self._seconds()
        quiet = 0.0
        while not self.pipe.poll(2.0):
            now = self._seconds()
            quiet = 0.0 if now - used > 0.02 else quiet + 2.0
            used = now
            if used - began > SECONDS or quiet > 2 * SECONDS:
                return False
        return True

    def _seconds(self) -> float:
        """What the worker has computed so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Let it end."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join()


def try_all(cases: Sequence[Case], folder: Path, material: Path) -> Iterable[dict[str, Any]]:
    """What became of each case."""
    worker = None
    for number, case in enumerate(cases):
        worker = worker or _Worker(cases, folder, material)
        ended, found = worker.ask(number)
        if found is None:
            worker = None
            found = {"group": case.group, "name": case.name, "expect": case.expect, "is": ended.split(" ")[0]}
            found |= {"out": "", "err": ended}
        yield found
    if worker is not None:
        worker.stop()

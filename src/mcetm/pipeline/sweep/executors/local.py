"""Processes on this machine: each trains one cell after the other, and several share a device."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mcetm.pipeline.sweep.attempt import Outcome, attempt_apart
from mcetm.pipeline.sweep.executors.settings import LocalSettings
from mcetm.pipeline.sweep.jobs import Job

_SHARED = 0.9
"""Of a GPU's memory, for all cells that share it."""
_SOON = 30.0
"""Seconds that a process has to save."""


@dataclass
class _Worker:
    process: Any
    pipe: Any
    place: int
    job: Job | None = None


class LocalExecutor:
    """A few processes that stay, so that each imports and compiles once; one that dies is replaced."""

    def __init__(self, settings: LocalSettings, folder: Path) -> None:
        self._settings, self._folder = settings, folder
        self._workers: list[_Worker] = []
        self._gpus = visible_gpus()

    @property
    def room(self) -> int:
        """Processes that have nothing to do, or are not begun yet."""
        return self._settings.parallel - sum(worker.job is not None for worker in self._workers)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Give each to a process of its own."""
        for job in jobs:
            worker = next((one for one in self._workers if one.job is None), None) or self._begun()
            worker.job = job
            with contextlib.suppress(BrokenPipeError):  # its end is heard of soon
                worker.pipe.send(job.model_dump())

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Hear of the first that are over."""
        ready = multiprocessing.connection.wait([worker.pipe for worker in self._workers], seconds)
        return [
            found for worker in list(self._workers) if worker.pipe in ready for found in self._heard(worker)
        ]

    def _heard(self, worker: _Worker) -> Iterator[tuple[Job, Outcome]]:
        job = worker.job
        try:
            outcome = worker.pipe.recv()
            worker.job = None
        except (EOFError, OSError):
            worker.process.join()
            self._workers.remove(worker)
            outcome = Outcome("lost", f"its process has ended {_how(worker.process.exitcode)}")
        if job is not None:
            yield job, outcome

    def _begun(self) -> _Worker:
        taken = {worker.place for worker in self._workers}
        place = next(i for i in range(self._settings.parallel) if i not in taken)
        spawned = multiprocessing.get_context("spawn")
        ours, theirs = spawned.Pipe()
        process = spawned.Process(target=_serve, args=(theirs, str(self._folder)), daemon=False)
        with _environment(self._variables(place)):  # which JAX reads as soon as it is imported
            process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours, place))
        return self._workers[-1]

    def _variables(self, place: int) -> dict[str, str]:
        """What the process of a place has in its environment: its device, and how much of it."""
        if not self._gpus:
            return {}
        mine = self._gpus[place % len(self._gpus)]
        sharing = sum(i % len(self._gpus) == place % len(self._gpus) for i in range(self._settings.parallel))
        return {"CUDA_VISIBLE_DEVICES": mine, **memory_share(self._settings.memory or _SHARED / sharing)}

    def close(self) -> None:
        """Have every process save and end."""
        for worker in self._workers:
            if worker.job is None:
                worker.pipe.close()  # it reads that there is nothing more
            else:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_SOON)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []


def memory_share(share: float) -> dict[str, str]:
    """Variables that keep JAX to a share of a GPU's memory, unless somebody has said otherwise."""
    known = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")  # the name until JAX 0.9
    return {} if any(name in os.environ for name in known) else {known[0]: f"{share:.3f}"}


def visible_gpus() -> list[str]:
    """GPUs that processes of this one may use, as CUDA calls them; JAX is not begun for it."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name for name in chosen.split(",") if name]
    if os.environ.get("JAX_PLATFORMS", "").startswith("cpu"):
        return []
    try:
        found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=20)  # noqa: S607
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(i) for i, line in enumerate(found.stdout.splitlines()) if line.startswith("GPU ")]


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        words = f"by {signal.Signals(-code).name}"
        return words + (", perhaps for want of memory" if -code == signal.SIGKILL else "")
    return f"with the code {code}"


def _serve(pipe: Any, folder: str) -> None:
    """Train what comes through the pipe, until nothing more does."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        while True:
            job = Job.model_validate(pipe.recv())
            pipe.send(attempt_apart(job, Path(folder)))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


def _interrupt(number: int, frame: Any) -> NoReturn:
    for again in (signal.SIGINT, signal.SIGTERM):  # it saves now, and the group may be told twice
        signal.signal(again, signal.SIG_IGN)
    raise KeyboardInterrupt

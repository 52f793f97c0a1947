"""A Ray cluster: each cell is one task that asks for what it needs, on whatever node has it.

Ray's own bookkeeping is not used: a cell knows its checkpoints, and the folder knows what is done. So a node
may go at any moment, and so may the head. A process of our own talks to the cluster, because Ray ends any
process whose head is gone for a minute; it is begun again when the head is back.
"""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcetm.console import one_line, say
from mcetm.errors import UserError
from mcetm.pipeline.sweep.attempt import Outcome, attempt_apart
from mcetm.pipeline.sweep.executors.local import memory_share
from mcetm.pipeline.sweep.executors.settings import RaySettings
from mcetm.pipeline.sweep.jobs import Job

_SHARED = 0.9
"""Of a GPU's memory, for all cells that share it."""
_SOON = 30.0
"""Seconds that cells have to save when all is to end."""
_PATIENCE = 20.0
"""Seconds in which whoever listens there must answer."""
_PAUSE = 5.0
"""Seconds between two attempts to reach a cluster."""


class RayExecutor:
    """Cells as tasks of a Ray cluster."""

    def __init__(self, settings: RaySettings, folder: Path) -> None:
        require_ray()
        self._settings, self._folder = settings, folder
        self._going: dict[str, Job] = {}
        self._full: list[str] = []
        """Nodes that had no room."""
        self._process: Any = None
        self._pipe: Any = None
        self._reached = self._there = False
        self._since = time.monotonic()
        self._reach()

    @property
    def room(self) -> int:
        """As many as may be asked for; what the cluster has no place for waits there, and lets it grow."""
        return 0 if self._process is None else self._settings.parallel - len(self._going)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Ask for these."""
        for job in jobs:
            self._going[job.name] = job
        self._tell(("train", [job.model_dump() for job in jobs], list(self._full)))

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Hear of tasks that are over; where the cluster is gone, all are."""
        if self._process is None:
            self._reach_again(seconds)
        found = []
        try:
            wait = seconds
            while self._pipe is not None and self._pipe.poll(wait):
                kind, name, outcome = self._pipe.recv()
                wait = 0.0
                if kind == "unreachable":
                    self._unreachable(name)
                    break
                self._reached = self._there = True
                self._since = time.monotonic()
                if kind == "over" and (job := self._going.pop(name, None)) is not None:
                    found.append((job, self._noted(outcome)))
        except (EOFError, OSError):
            self._lost()
        if self._process is None:
            found += [(job, Outcome("gone")) for job in self._going.values()]
            self._going = {}
        return found

    def _noted(self, outcome: Outcome) -> Outcome:
        if outcome.kind == "no room" and outcome.place and outcome.place not in self._full:
            self._full.append(outcome.place)
        return outcome if outcome.kind != "no room" else replace(outcome, place=outcome.place or "a node")

    def _reach(self) -> None:
        """Begin the process that talks to the cluster."""
        spawned = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawned.Pipe()
        told = (theirs, self._settings.model_dump(), str(self._folder))
        self._process = spawned.Process(target=_drive, args=told, daemon=False)
        self._process.start()
        theirs.close()

    def _reach_again(self, seconds: float) -> None:
        if time.monotonic() - self._since > self._settings.patience:
            raise UserError(
                f"The Ray cluster {self._words} has not answered for {self._settings.patience:,.0f} seconds. "
                "What is finished is kept; call again to go on."
            )
        time.sleep(min(_PAUSE, seconds))
        self._reach()

    def _unreachable(self, why: str) -> None:
        if not self._reached:
            self.close()
            raise UserError(f"There is no Ray cluster {self._words} that can be used: {why}.")
        self._lost()

    def _lost(self) -> None:
        """The process is gone, or is of no use any more."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._there:
            self._since = time.monotonic()
            say(f"The Ray cluster {self._words} is gone; cells go on when it is back.", file=sys.stderr)
        self._process = self._pipe = None
        self._there = False

    @property
    def _words(self) -> str:
        return "of this machine" if self._settings.address is None else f"at {self._settings.address}"

    def _tell(self, message: Any) -> None:
        try:
            if self._pipe is not None:
                self._pipe.send(message)
        except (BrokenPipeError, OSError):
            self._lost()

    def close(self) -> None:
        """Have all tasks save and end."""
        self._tell(("stop", [], []))
        if self._process is not None:
            self._process.join(_SOON + 15.0)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        self._process = self._pipe = None


def require_ray() -> None:
    """Refuse where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UserError("Ray is not installed, which the executor asks for: pip install 'mcetm[ray]'.")


def _drive(pipe: Any, plain: dict[str, Any], folder: str) -> None:
    """Talk to the cluster: pass tasks on, and tell what came of them."""
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever began this process says when to stop
        signal.signal(number, signal.SIG_IGN)
    settings = RaySettings.model_validate(plain)
    ray: Any = importlib.import_module("ray")
    # Without an address Ray would first wait for the cluster that it remembers, even one that is gone.
    address = settings.address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        _knock(address)
        ray.init(
            address=address,
            namespace="mcetm",
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": settings.environment} if settings.environment else None,
        )
    except Exception as error:
        pipe.send(("unreachable", _first_line(error), None))
        return
    pipe.send(("reached", "", None))
    going: dict[Any, str] = {}
    try:
        while True:
            while pipe.poll(0.0 if going else 1.0):
                kind, jobs, full = pipe.recv()
                if kind == "stop":
                    return
                for job in jobs:
                    going[_task(ray, settings, full).remote(job, folder, settings.gpus)] = job["name"]
            if going:
                ready, _ = ray.wait(list(going), timeout=0.5)
                for task in ready:
                    pipe.send(("over", going.pop(task), _outcome(ray, task)))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:  # whatever it is, the way back is the same: to reach the cluster anew
        pipe.send(("unreachable", _first_line(error), None))
    finally:
        _stop(ray, list(going))


def _knock(address: str) -> None:
    """Whether anybody listens there: Ray itself would wait for hours."""
    place = address.removeprefix("ray://").rpartition(":")
    if place[0] and place[2].isdigit():
        with socket.create_connection((place[0].strip("[]"), int(place[2])), _PATIENCE):
            return


def _first_line(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}".splitlines()[0], 300)


def _task(ray: Any, settings: RaySettings, full: Sequence[str]) -> Any:
    """The task of one cell, with what it asks for; nodes that had no room are not asked."""
    asked: dict[str, Any] = {
        "num_cpus": settings.cpus,
        "num_gpus": settings.gpus,
        "max_retries": 0,  # the list knows how often a cell was tried
        "resources": settings.resources or None,
    }
    if settings.gpus:
        asked["max_calls"] = 1  # only a process that ends gives a GPU's memory back
    if settings.memory_gb:
        asked["memory"] = int(settings.memory_gb * 1e9)
    if full:
        asked["label_selector"] = {"ray.io/node-id": f"!in({','.join(full)})"}
    return ray.remote(**asked)(_train)


def _outcome(ray: Any, task: Any) -> Outcome:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        return Outcome("lost", f"it could not begin: {error.cause}".replace("\n", " ")[:500])
    except (ray.exceptions.NodeDiedError, ray.exceptions.LocalRayletDiedError):
        return Outcome("gone")
    except ray.exceptions.OutOfMemoryError:
        return Outcome("lost", "its process was ended for want of memory on its node")
    except ray.exceptions.RayError as error:
        return Outcome("lost", f"its process has ended ({type(error).__name__})")


def _stop(ray: Any, going: list[Any]) -> None:
    """Interrupt what goes on, so that it saves."""
    try:
        for task in going:
            ray.cancel(task, force=False)
        if going:
            ray.wait(going, num_returns=len(going), timeout=_SOON)
        ray.shutdown()
    except Exception as error:  # the cluster may be gone
        say(f"Tasks could not be told to stop: {_first_line(error)}", file=sys.stderr)


def _train(job: dict[str, Any], folder: str, gpus: float) -> Outcome:
    """On a node: train one cell in this process."""
    ray: Any = importlib.import_module("ray")
    if threading.current_thread() is threading.main_thread():
        # Ray cancels a task by an interrupt, which a node that was begun in the background would ignore.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if 0.0 < gpus < 1.0:
        os.environ.update(memory_share(_SHARED * gpus))
    node = ray.get_runtime_context().get_node_id()
    return attempt_apart(Job.model_validate(job), Path(folder), place=node)

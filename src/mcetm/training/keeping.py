"""What a job leaves on the way: metrics and checkpoints, from which it goes on bit for bit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray

from mcetm.training.checkpoint import (
    Checkpoint,
    checkpoint_path,
    list_checkpoints,
    load_newest,
    remove_old,
    save_checkpoint,
)
from mcetm.training.metrics import MetricsFile, plain
from mcetm.training.stopping import Best


@dataclass(frozen=True)
class PartialState:
    """The part of a state that is worth carrying to another machine; the rest can be made anew."""

    take: Callable[[Any], Any]
    """The part, from a state."""
    put: Callable[[Any, Any], Any]
    """A fresh state with the part in it."""


@dataclass(frozen=True)
class Saving:
    """Where a job keeps its metrics and checkpoints, and how often it saves."""

    folder: Path
    config: Mapping[str, Any]
    """Everything the result depends on; a checkpoint of another configuration is refused."""
    every_seconds: float = 30.0
    """Least time between saves; 0 saves after every chunk. A large state waits longer."""
    keep: int = 2
    partial: PartialState | None = None
    """Keep a light checkpoint beside each exact one; it is used where there is no exact one."""

    def pause(self, cost: float) -> float:
        """Seconds to wait after a save that took `cost`: a twentieth of the time is enough for saving."""
        return max(self.every_seconds, 20.0 * cost) if self.every_seconds else 0.0

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.folder / "checkpoints"

    @property
    def light_checkpoints(self) -> Path:
        """The folder of the light ones, of which the newest is kept."""
        return self.folder / "light"


class Job(eqx.Module):
    """All that a checkpoint must hold."""

    state: Any
    key: PRNGKeyArray
    best: Best | None


class Keeper:
    """What a job leaves on the way: its metrics, and checkpoints from time to time; or nothing."""

    def __init__(self, saving: Saving | None, chunk: int, label: str) -> None:
        self.history: list[dict[str, Any]] = []
        self._label, self._saving, self._metrics = label, None, None
        self._saved_at, self._last_save, self._cost = 0, time.monotonic(), 0.0
        if saving is not None:
            self._saving = replace(saving, config={**saving.config, "chunk": chunk})
            self._metrics = MetricsFile(saving.folder / "metrics.jsonl")

    def resume(self, job: Job) -> tuple[Job, int, dict[str, Any] | None]:
        """The job as its newest checkpoint has it: its step, and what was done for the next chunk already."""
        done, noted, saving = 0, None, self._saving
        if saving is None or self._metrics is None:
            return job, done, noted
        if (found := self._newest(saving.checkpoints, job, saving.keep)) is not None:
            job, done, noted = found.state, found.step, found.extra.get("noted")
            if checkpoint_path(saving.light_checkpoints, done) not in list_checkpoints(
                saving.light_checkpoints
            ):
                self._save_light(saving, job, done)  # a kill may have come between the two
        elif saving.partial is not None:
            part = saving.partial.take(job.state)
            if (found := self._newest(saving.light_checkpoints, part, 1)) is not None:
                job, done = replace(job, state=saving.partial.put(job.state, found.state)), found.step
                self._say(f"going on from a light checkpoint at step {done}, not bit for bit")
        self._metrics.rewind(done)
        self.history, self._saved_at = self._metrics.read(), done
        return job, done, noted

    def _newest(self, folder: Path, like: Any, keep: int) -> Checkpoint | None:
        """The newest whole checkpoint of a folder; those that are damaged are named."""
        assert self._saving is not None  # noqa: S101 (whoever asks keeps checkpoints)
        found, damaged = load_newest(folder, like, config=self._saving.config)
        for error in damaged:
            self._say(f"{error} Going on from an older one.")
        if found is not None and not damaged:  # one that is damaged stays until it is made anew
            remove_old(folder, found.step, keep=keep)  # a kill may have come before that
        return found

    def _say(self, words: str) -> None:
        print(f"{self._label}: {words}", file=sys.stderr)

    def note(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the metrics of a chunk; as they are written down."""
        self.history.append({name: plain(value) for name, value in line.items()})
        if self._metrics is not None:
            self._metrics.append(line)
        return self.history[-1]

    def save_in_time(self, job: Job, done: int, noted: dict[str, Any] | None) -> None:
        """Save if the last time is long enough ago."""
        if self._saving is not None and time.monotonic() - self._last_save >= self._saving.pause(self._cost):
            self.save(job, done, noted)

    def save(self, job: Job, done: int, noted: dict[str, Any] | None) -> None:
        """Write a checkpoint, unless the newest one is of this step."""
        saving, began = self._saving, time.monotonic()
        if saving is None or done <= self._saved_at:
            return
        extra = {} if noted is None else {"noted": noted}
        save_checkpoint(
            saving.checkpoints, job, step=done, config=saving.config, extra=extra, keep=saving.keep
        )
        self._save_light(saving, job, done)
        self._saved_at, self._last_save, self._cost = done, time.monotonic(), time.monotonic() - began

    def _save_light(self, saving: Saving, job: Job, done: int) -> None:
        """Write the light checkpoint of a step, where there is one."""
        if saving.partial is not None:
            part = saving.partial.take(job.state)
            save_checkpoint(saving.light_checkpoints, part, step=done, config=saving.config, keep=1)

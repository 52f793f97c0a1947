"""This process: one cell after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcetm.pipeline.sweep.attempt import Outcome, attempt
from mcetm.pipeline.sweep.jobs import Job


class HereExecutor:
    """Trains a cell when it is asked what has come of it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._waiting = folder, list[Job]()

    @property
    def room(self) -> int:
        """One at a time."""
        return 1 - len(self._waiting)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Take it."""
        self._waiting.extend(jobs)

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Train it now, however long that takes."""
        jobs, self._waiting = self._waiting, []
        return [(job, attempt(job, self._folder)) for job in jobs]

    def close(self) -> None:
        """Nothing goes on when nobody asks."""

"""Where cells are trained. Each kind of place is one class with three methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from pydantic import Field

from mcetm.pipeline.sweep.attempt import Outcome
from mcetm.pipeline.sweep.executors.settings import LocalSettings, RaySettings, SlurmSettings
from mcetm.pipeline.sweep.jobs import Job

__all__ = ["Executor", "ExecutorSettings", "LocalSettings", "make_executor", "usual_executor"]

ExecutorSettings = Annotated[LocalSettings | RaySettings | SlurmSettings, Field(discriminator="name")]


def usual_executor(given: Any) -> Any:
    """What a file says of an executor; one that it does not name is this machine."""
    return {"name": "local", **given} if isinstance(given, Mapping) else given


@runtime_checkable
class Executor(Protocol):
    """A place where cells are trained, several at a time."""

    @property
    def room(self) -> int:
        """How many more cells it takes now."""
        ...

    def submit(self, jobs: Sequence[Job]) -> None:
        """Take these cells; they may begin at once or later."""
        ...

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """What has come of cells since the last call; waits at most so long for the first."""
        ...

    def close(self) -> None:
        """Stop all that still goes on, each at a point from which it goes on."""
        ...


def make_executor(settings: ExecutorSettings, folder: Path) -> Executor:
    """The place that settings describe; what it needs is imported now."""
    if isinstance(settings, RaySettings):
        from mcetm.pipeline.sweep.executors.ray import RayExecutor

        return RayExecutor(settings, folder)
    if isinstance(settings, SlurmSettings):
        from mcetm.pipeline.sweep.executors.slurm import SlurmExecutor

        return SlurmExecutor(settings, folder)
    if settings.parallel == 1:
        from mcetm.pipeline.sweep.executors.here import HereExecutor

        return HereExecutor(folder)
    from mcetm.pipeline.sweep.executors.local import LocalExecutor

    return LocalExecutor(settings, folder)

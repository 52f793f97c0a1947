"""Jobs, results and executors that train nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcetm.files import write_json
from mcetm.pipeline.cell_result import CellResult
from mcetm.pipeline.sweep.attempt import Outcome
from mcetm.pipeline.sweep.jobs import Job


def a_job(name: str, *, label: str = "", world: str | None = None, **more: Any) -> Job:
    return Job(
        name=name,
        label=label or name,
        system=more.pop("system", label or name),
        values=more.pop("values", {}),
        log=more.pop("log", "swings"),
        key=name,
        seeds=more.pop("seeds", [0]),
        updates=100,
        config={},
        episodes=2,
        estimate=None,
        data="0" * 64,
        world=world,
    )


def a_result(
    job: Job, *, returns: Sequence[float] = (), estimates: Sequence[Any] | None = None
) -> CellResult:
    count = len(job.seeds)
    return CellResult.model_validate(
        {
            "key": job.key,
            "log": job.log,
            "label": job.label,
            "task": "pendulum" if returns else None,
            "scale": None,
            "data": job.data,
            "data_return": -1000.0,
            "rows": 400,
            "notes": [],
            "seeds": job.seeds,
            "world": 0,
            "updates": job.updates,
            "returns": [[value] for value in returns],
            "lengths": [[200]] * count if returns else [],
            "curve_steps": [],
            "curve": [],
            "diagnosis": None,
            "estimates": None
            if estimates is None
            else [
                {
                    "value": value,
                    "interval": None if value is None else [value - 1, value + 1],
                    "believed": believed,
                    "verdict": "",
                }
                for value, believed in estimates
            ],
            "seconds": {"policy": 10.0},
            "settings": {},
            "environment": {},
        }
    )


class Scripted:
    """An executor for which it is written down what comes of each attempt."""

    def __init__(self, folder: Path, script: dict[str, list[Outcome]], room: int = 2) -> None:
        self.folder, self.script, self._room = folder, script, room
        self.begun: list[str] = []
        self.together = 0
        self._going: deque[Job] = deque()

    @property
    def room(self) -> int:
        return self._room - len(self._going)

    def submit(self, jobs: Sequence[Job]) -> None:
        self._going.extend(jobs)
        self.begun += [job.name for job in jobs]
        self.together = max(self.together, len(self._going))

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        job = self._going.popleft()
        outcomes = self.script.get(job.name, [])
        outcome = outcomes.pop(0) if outcomes else Outcome("done")
        if outcome.kind == "done":
            write_json(job.result(self.folder), a_result(job, returns=[-900.0]).model_dump())
        return [(job, outcome)]

    def close(self) -> None:
        """Nothing goes on."""

"""A sweep, from its plan to what is chosen: begun, gone on with, and read back from its folder."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcetm.documents import Record, read_json
from mcetm.evaluation.comparison import Comparison
from mcetm.files import write_json
from mcetm.pipeline.cell_result import CellResult, read_cell
from mcetm.pipeline.sweep.attempt import forget_failures
from mcetm.pipeline.sweep.executors import make_executor
from mcetm.pipeline.sweep.executors.settings import LocalSettings
from mcetm.pipeline.sweep.jobs import Job, jobs_of, write_jobs
from mcetm.pipeline.sweep.plan import SweepPlan
from mcetm.pipeline.sweep.run import Heard, run_jobs
from mcetm.pipeline.sweep.score import Chosen, Score, choices, score_of
from mcetm.pipeline.sweep.search import rounds
from mcetm.pipeline.sweep.status import Status, status_of
from mcetm.pipeline.sweep.table import compare_cells


class _Said(Record):
    """What a folder says of its sweep beside its cells."""

    title: str
    chosen_by: Literal["estimates", "returns"]
    plan: dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """What is known of a sweep."""

    title: str
    status: Status
    comparison: Comparison | None
    """None where nothing has finished yet."""
    chosen: tuple[Chosen, ...]

    @property
    def policies(self) -> int:
        """How many policies were trained."""
        return sum(len(result.seeds) for result in self.status.found.values())

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "title": self.title,
            "status": self.status.to_dict(),
            "policies": self.policies,
            "chosen": [one.to_dict() for one in self.chosen],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }


def run_sweep(
    plan: SweepPlan,
    folder: Path,
    *,
    retry: bool = False,
    minutes: float | None = None,
    heard: Heard | None = None,
) -> Sweep:
    """Train what is missing of a plan; with `retry`, what has failed too."""
    if retry:
        forget_failures(folder)
    portable = not isinstance(plan.executor, LocalSettings)
    jobs: list[Job] = []
    by_label: dict[tuple[str, str], list[Job]] = {}
    # Logs that are files go by their names in tables, and by their paths in the plan.
    names: dict[str, str] = {}

    def judge(label: str, source: str) -> Score | None:
        own = by_label.get((label, names.get(source, source)), [])
        results = [read_cell(job.result(folder)) for job in own if job.result(folder).exists()]
        return score_of(results, plan.chosen_by)

    with ExitStack() as end:
        executor = None
        for planned in rounds(plan, folder, judge):
            found = jobs_of(planned, folder, portable=portable)
            names |= {one.source: one.cell.log for one in planned}
            known = {job.name for job in jobs}
            jobs += [job for job in found if job.name not in known]
            for job in found:
                by_label.setdefault((job.label, job.log), []).append(job)
            said = _Said(title=plan.title, chosen_by=plan.chosen_by, plan=plan.model_dump(mode="json"))
            write_json(folder / "sweep.json", said.model_dump())
            write_jobs(folder, jobs)
            if executor is None:
                executor = end.enter_context(closing(make_executor(plan.executor, folder)))
            run_jobs(jobs, folder, executor, minutes=minutes, heard=heard)
            if any(cell.state not in ("done", "failed") for cell in status_of(folder, jobs).cells):
                break  # time is over, and what comes next depends on what is missing
    return read_sweep_folder(folder)


def read_sweep_folder(folder: Path) -> Sweep:
    """What is known of a sweep now, whether it runs or not."""
    status = status_of(folder)
    path = folder / "sweep.json"
    said = read_json(path, _Said) if path.exists() else None  # a benchmark has a plan of its own
    by = "returns" if said is None else said.chosen_by
    jobs = [cell.job for cell in status.cells]
    return Sweep(
        folder.name if said is None else said.title,
        status,
        _compared(jobs, status.found),
        tuple(choices(jobs, status.found, by)),
    )


def _compared(jobs: Sequence[Job], found: dict[str, CellResult]) -> Comparison | None:
    results: dict[tuple[str, str], list[CellResult]] = {}
    for job in jobs:
        if job.name in found:
            results.setdefault((job.label, job.log), []).append(found[job.name])
    labels = list(dict.fromkeys(job.label for job in jobs))
    logs = list(dict.fromkeys(job.log for job in jobs))
    return compare_cells(labels, logs, results)

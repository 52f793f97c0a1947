"""The benchmark: train what is missing, then make everything that is shown from the files of the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcetm.files import write_json, write_text
from mcetm.pipeline import failures_in, read_cells, run_planned
from mcetm_experiments.benchmark.page import PAGE, write_page
from mcetm_experiments.benchmark.plan import BenchmarkPlan, planned, read_plan
from mcetm_experiments.benchmark.tables import fill

if TYPE_CHECKING:
    from mcetm_experiments.benchmark.settings import BenchmarkStudy


def run_benchmark(settings: BenchmarkStudy) -> int:
    """The exit code: 1 where a cell of the chosen tables has failed or was not run."""
    plan = read_plan(settings.plan)
    chosen = {table.name for table in plan.chosen(settings.only)}
    if not settings.page:
        train_cells(settings, plan)
    results = read_cells(settings.out)
    tables = [fill(plan, table, results, official=settings.data is not None) for table in plan.table]
    shown = {(cell.key, cell.log) for filled in tables for cells in filled.results.values() for cell in cells}
    used = [result for result in results if (result.key, result.log) in shown]
    write_text(settings.out / PAGE, write_page(settings.out, plan, tables, used, failures_in(settings.out)))
    write_json(
        settings.out / "results.json",
        {
            "study": "benchmark",
            "tables": {
                filled.table.name: None if filled.comparison is None else filled.comparison.to_dict()
                for filled in tables
            },
        },
    )
    missing = sum(len(filled.missing) for filled in tables if filled.table.name in chosen)
    print(f"wrote {settings.out / PAGE}; cells: {len(used)} done, {missing} not run in the chosen tables")
    return 1 if missing else 0


def train_cells(settings: BenchmarkStudy, plan: BenchmarkPlan) -> None:
    """Train what the chosen tables need and nobody has trained."""
    official = settings.data is not None
    needed = [one for table in plan.chosen(settings.only) for one in planned(plan, table, official=official)]
    jobs = {} if settings.jobs is None else {"parallel": settings.jobs}
    run_planned(
        needed,
        settings.out,
        plan.executor.model_copy(update=jobs),
        data=settings.data,
        retry=settings.retry,
        minutes=settings.minutes,
    )

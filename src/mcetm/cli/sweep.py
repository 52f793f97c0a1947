"""`mcetm sweep`: many trainings from one file, here or on a cluster, and how far they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from mcetm.console import say

Flag = Annotated[bool, arg(help_behavior_hint="")]
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]


@dataclass(frozen=True)
class Sweep:
    """Train all cells of a plan: tasks × algorithms × settings × seeds; calling again goes on.

    `mcetm sweep status DIR` says how far it is, with the table of what is there.
    """

    plan: Positional[Annotated[str, arg(metavar="FILE.toml")]]
    """What to train: a TOML file (docs/how-to/sweep.md); or `status`, with the folder of a sweep."""

    folder: Positional[Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]] = None
    """The folder of the sweep to look at."""

    out: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Where everything goes; sweeps/NAME-OF-THE-FILE by default. Machines of a cluster must share it."""

    executor: Annotated[
        Literal["local", "ray", "slurm"] | None, arg(metavar="WHERE", help_behavior_hint="")
    ] = None
    """Where cells are trained, if not where the file says: local, ray, slurm."""

    parallel: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Cells trained at the same time, if not as many as the file says."""

    set: Annotated[tuple[str, ...], arg(metavar="NAME=VALUE", help_behavior_hint="")] = ()
    """Other changes of the file: --set executor.gpus=0.25 search.trials=64 seeds=5."""

    retry: Flag = False
    """Try again what has failed."""

    minutes: Annotated[float | None, arg(metavar="M", help_behavior_hint="")] = None
    """Begin nothing more after so many minutes."""

    json: Flag = False
    """Print JSON, and nothing else."""

    csv: File = None
    """Also write the table as CSV here."""

    markdown: File = None
    """Also write the table as Markdown here."""

    latex: File = None
    """Also write the table as LaTeX here."""

    def run(self) -> int:
        """Train what is missing, or only look; then show what there is."""
        from mcetm.errors import UserError

        if self.plan == "status":
            if self.folder is None:
                raise UserError("Name the folder of the sweep: mcetm sweep status DIR.")
            for name in ("out", "executor", "parallel", "minutes"):
                if getattr(self, name) is not None:
                    raise UserError(f"--{name} is for a sweep that is to run; `status` only looks.")
            return self._show(self.folder)
        if self.folder is not None:
            raise UserError(f"Name one plan; {self.folder} is left over. A sweep's folder is --out DIR.")
        return self._train()

    def _train(self) -> int:
        from mcetm.compilation import keep_programs
        from mcetm.errors import UserError
        from mcetm.pipeline.sweep.plan import read_sweep
        from mcetm.pipeline.sweep.sweep import run_sweep
        from mcetm.tasks.own import remember

        path = Path(self.plan)
        if self.minutes is not None and not 0.0 <= self.minutes < math.inf:
            raise UserError(f"--minutes should be a number of minutes, not {self.minutes}.")
        changes = list(self.set)
        if self.executor is not None:
            changes.insert(0, f"executor.name={self.executor}")
        if self.parallel is not None:
            changes.append(f"executor.parallel={self.parallel}")
        plan = read_sweep(path, changes)
        for name in (plan.task, *(system.model for system in plan.systems)):
            remember(name)
        keep_programs()
        folder = self.out or Path("sweeps") / path.stem
        try:
            place = folder.resolve()
        except (OSError, RuntimeError):
            raise UserError(f"{folder} is a loop of links; choose another --out.") from None
        try:
            run_sweep(
                plan,
                place,
                retry=self.retry,
                minutes=self.minutes,
                heard=None if self.json else _tell,
            )
        except KeyboardInterrupt:
            say(f"stopped; the same command goes on. How far it is: mcetm sweep status {folder}")
            raise
        return self._show(folder)

    def _show(self, folder: Path) -> int:
        import json

        from mcetm.console import output
        from mcetm.errors import UserError
        from mcetm.files import check_output, write_text
        from mcetm.pipeline.sweep.show import show_sweep, write_sweep
        from mcetm.pipeline.sweep.sweep import read_sweep_folder
        from mcetm.report.compare import to_csv, to_latex, to_markdown

        tables = ((self.csv, to_csv), (self.markdown, to_markdown), (self.latex, to_latex))
        places = [check_output(path) for path, _ in tables if path is not None]  # before the work
        if len(set(places)) < len(places):
            raise UserError(f"Two tables cannot go into one file, {places[-1]}.")
        sweep = read_sweep_folder(folder)
        written = write_sweep(sweep, folder)
        for path, form in tables:
            if path is not None and sweep.comparison is not None:
                write_text(path, form(sweep.comparison))
                written.append(path)
        if self.json:
            print(json.dumps(sweep.to_dict(), indent=1, allow_nan=False))
        else:
            show_sweep(sweep, output())
            say(f"wrote {', '.join(str(path) for path in written)}")
        return 0 if self.plan == "status" or sweep.status.count("done") == len(sweep.status.cells) else 1


def _tell(job: object, outcome: object) -> None:
    """A line for each cell that is over."""
    from mcetm.pipeline.sweep.attempt import Outcome
    from mcetm.pipeline.sweep.jobs import Job
    from mcetm.pipeline.sweep.show import seeds_of

    if isinstance(job, Job) and isinstance(outcome, Outcome):
        words = f": {outcome.words}" if outcome.words else ""
        say(f"{job.log}, {job.label}, seeds {seeds_of(job.seeds)}: {outcome.kind}{words}")

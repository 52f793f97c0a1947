"""`mcetm compare`: several runs side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

Flag = Annotated[bool, arg(help_behavior_hint="")]
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]


@dataclass(frozen=True)
class Compare:
    """Compare finished runs: one table and one figure, with intervals that few seeds allow."""

    runs: Positional[Annotated[tuple[str, ...], arg(metavar="RUN [RUN ...]", help_behavior_hint="")]]
    """Folders of finished runs; LABEL=RUN takes a run's own algorithm only, and calls it LABEL."""

    json: Flag = False
    """Print JSON, and nothing else."""

    csv: File = None
    """Also write the numbers as CSV."""

    markdown: File = None
    """Also write the tables as Markdown."""

    latex: File = None
    """Also write the tables as LaTeX (booktabs)."""

    task: Annotated[str | None, arg(metavar="MODULE:NAME", help_behavior_hint="")] = None
    """A task of your own that the runs name: its module may be imported."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("compare")
    """Where the figure goes: compare.png and compare.svg."""

    def run(self) -> int:
        """Read, compute, write, print."""
        from mcetm.errors import UserError
        from mcetm.files import check_output, write_text
        from mcetm.pipeline.compare import compare_runs
        from mcetm.report.compare import draw_comparison, show_comparison, to_csv, to_latex, to_markdown
        from mcetm.tasks.own import remember

        if not self.runs:
            raise UserError("Name the folders of the runs to compare: mcetm compare RUN [RUN ...].")
        if self.task is not None and ":" not in self.task:
            raise UserError(f"--task is for a task of your own, as MODULE:NAME, and not for '{self.task}'.")
        remember(self.task)
        tables = ((self.csv, to_csv), (self.markdown, to_markdown), (self.latex, to_latex))
        places = [check_output(path) for path, _ in tables if path is not None]  # before the work
        if len(set(places)) < len(places):
            raise UserError(f"Two tables cannot go into one file, {places[-1]}.")
        comparison = compare_runs(self.runs)
        for path, form in tables:
            if path is not None:
                write_text(path, form(comparison))
        draw_comparison(self.out / "compare.png", comparison)
        written = [self.out / "compare.png", *(path for path, _ in tables if path is not None)]
        if self.json:
            import json

            print(json.dumps(comparison.to_dict(), indent=1, allow_nan=False))
            return 0
        from mcetm.console import output, say

        show_comparison(comparison, output())
        say(f"wrote {', '.join(str(path) for path in written)} (the figure as .svg too)")
        return 0

"""A sweep for people: how far it is, what has failed, what was found and chosen; on screen and in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcetm.files import write_json, write_text
from mcetm.pipeline.sweep.status import Status
from mcetm.pipeline.sweep.sweep import Sweep
from mcetm.report.compare import draw_comparison, show_comparison, to_csv, to_markdown

if TYPE_CHECKING:
    from rich.console import Console


def show_status(status: Status, console: Console) -> None:
    """How far everything is: one line, what runs, and every failure with its sentence."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(counts(status)))
    running = [cell for cell in status.cells if cell.state in ("running", "stopped")]
    if running:
        table = Table()
        for name in ("cell", "log", "seeds", "", "updates"):
            table.add_column(name, justify="right" if name == "updates" else "left", overflow="fold")
        for cell in running:
            job = cell.job
            far = f"{cell.updates:,} of {job.updates:,}" if cell.updates else "models, or compiling"
            table.add_row(Text(job.label), Text(job.log), Text(seeds_of(job.seeds)), cell.state, far)
        console.print(table)
    for line in failures(status):
        console.print(Text(line))


def show_sweep(sweep: Sweep, console: Console) -> None:
    """Everything that is known."""
    from rich.text import Text

    show_status(sweep.status, console)
    if sweep.comparison is not None:
        show_comparison(sweep.comparison, console)
    for one in sweep.chosen:
        console.print(Text(f"• {one}"))


def write_sweep(sweep: Sweep, folder: Path) -> list[Path]:
    """Table, figure and all numbers as files."""
    written = [folder / "results.json"]
    write_json(written[0], sweep.to_dict())
    parts = [f"# {sweep.title}", counts(sweep.status)]
    if sweep.comparison is not None:
        written += [folder / "table.csv", folder / "compare.png"]
        write_text(written[1], to_csv(sweep.comparison))
        draw_comparison(written[2], sweep.comparison)
        parts += [to_markdown(sweep.comparison).strip(), "![learning curves and scores](compare.png)"]
    if sweep.chosen:
        parts += ["**What is chosen**", "\n".join(f"- {one}" for one in sweep.chosen)]
    if lines := failures(sweep.status):
        parts += ["**What has failed**", "\n".join(f"- {line}" for line in lines)]
    written.append(folder / "table.md")
    write_text(written[-1], "\n\n".join(parts) + "\n")
    return written


def counts(status: Status) -> str:
    """How many cells are done, run, have failed, and how long the others take."""
    others = {state: status.count(state) for state in ("running", "stopped", "waiting", "failed")}
    parts = [f"{status.count('done')} of {len(status.cells)} cells done"]
    parts += [f"{count} {state}" for state, count in others.items() if count]
    left = status.seconds_left
    if left is not None:
        minutes = left / 60.0
        parts.append(
            f"about {minutes / 60:.1f} hours left" if minutes > 90 else f"about {minutes:.0f} min left"
        )
    return ", ".join(parts) + "."


def failures(status: Status) -> list[str]:
    """Every failure, in a sentence."""
    return [
        f"{cell.job.log}, {cell.job.label}, seeds {seeds_of(cell.job.seeds)}: failed: {cell.failure}"
        for cell in status.failures
    ]


def seeds_of(seeds: list[int]) -> str:
    """Seeds that follow each other, in a few characters."""
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]}–{seeds[-1]}"

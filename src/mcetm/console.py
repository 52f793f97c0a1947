"""What goes to the terminal: tables, and bars with rate and time left where somebody is watching."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Advance", "output", "progress"]


@runtime_checkable
class Advance(Protocol):
    """Move a bar on by an amount, and tell it the total once that is known."""

    def __call__(self, amount: float, total: float | None = None, note: str = "") -> None:
        """Add `amount` to what is done; `note` holds the numbers that matter."""
        ...


@contextlib.contextmanager
def progress(label: str, total: float | None, *, unit: str = "") -> Iterator[Advance]:
    """Yield a function that advances the bar; no bar where stderr is not a terminal.

    `unit="bytes"` counts in megabytes.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    if unit == "bytes":
        columns = (DownloadColumn(), TransferSpeedColumn())
    else:
        columns = (MofNCompleteColumn(), TextColumn(f"{{task.fields[rate]}} {unit}/s"))
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=total, rate="…", note="")

        def advance(amount: float, total: float | None = None, note: str = "") -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:,.0f}" if speed else "…"
            bar.update(task, advance=amount, total=total, rate=rate, note=note)

        yield advance


def output() -> Console:
    """The console for results; a reader that closes the pipe early is told by BrokenPipeError."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Output()
    # Rich assumes 80 columns where there is no terminal; a file or a pipe has room.
    return console if console.is_terminal or "COLUMNS" in os.environ else Output(width=120)

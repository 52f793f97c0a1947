"""Progress on a terminal: a bar with rate and time left; silence when nobody is watching."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, runtime_checkable


@runtime_checkable
class Advance(Protocol):
    """Move a bar on by an amount, and tell it the total once that is known."""

    def __call__(self, amount: float, total: float | None = None) -> None:
        """Add `amount` to what is done."""
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
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=total, rate="…")

        def advance(amount: float, total: float | None = None) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, advance=amount, total=total, rate=f"{speed:,.0f}" if speed else "…")

        yield advance

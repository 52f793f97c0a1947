"""What goes to the terminal: tables, and bars with rate and time left where somebody is watching."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Advance", "one_line", "output", "printable", "progress", "say"]


def printable(text: str) -> str:
    r"""Text that only shows itself: what would move the cursor, ring or recolour is written as `\x1b`.

    Names come from files, and files may come from anybody. New lines stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def one_line(text: str, most: int = 60) -> str:
    """A name from a file, fit for the middle of a sentence: printable, on one line, not too long."""
    shown = "".join(c if c.isprintable() else _escaped(c) for c in text[: most + 1])
    return f"{shown[:most]}…" if len(shown) > most else shown


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


def say(text: str, *, file: Any = None) -> None:
    """Print a line of words; what a name in it would do to the terminal is shown, not done."""
    print(printable(text), file=file or sys.stdout)


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
        columns = (MofNCompleteColumn(), TextColumn(f"{{task.fields[rate]}} {unit}/s", markup=False))
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(printable(label), total=total, rate="…", note="")

        def advance(amount: float, total: float | None = None, note: str = "") -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:,.0f}" if speed else "…"
            bar.update(task, advance=amount, total=total, rate=rate, note=note)

        yield advance


def output() -> Console:
    """The console for results; a reader that closes the pipe early is told by BrokenPipeError.

    Words are words: no name in them is taken for markup, and none reaches the terminal as a command.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                plain = segment.control is not None or segment.text.isprintable()
                yield segment if plain else Segment(printable(segment.text), segment.style)

    words: dict[str, Any] = {"markup": False, "emoji": False}
    console = Output(**words)
    # Rich assumes 80 columns where there is no terminal; a file or a pipe has room.
    return console if console.is_terminal or "COLUMNS" in os.environ else Output(width=120, **words)

"""What goes to the terminal: tables, and bars with rate and time left where somebody is watching."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Advance", "one_line", "output", "printable", "progress", "say", "stage"]


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
def progress(label: str, total: float | None, *, unit: str = "", done: float = 0) -> Iterator[Advance]:
    """Yield a function that says how far the work is, of which `done` was done before.

    On a terminal that is a bar, with rate and time left; elsewhere a line a minute. `unit="bytes"` counts in
    megabytes.
    """
    job = _Job(printable(label), total, unit, done)
    with _shown(job):
        yield job.advance


@contextlib.contextmanager
def stage(words: str, *, place: str = "") -> Iterator[None]:
    """Say that a stage begins, such as the third `of 7`; bars inside say the same place."""
    job = _Job(printable(words), None, "", 0, place)
    with _shown(job):
        display = _displays[-1] if _displays else _Display()
        if not display.is_terminal:
            display.say(job.name)
        yield
    if display.is_terminal:
        display.say(f"{job.name}, {job.words()}")


class _Job:
    """Work that goes on: what it is called, and how far it is."""

    def __init__(self, label: str, total: float | None, unit: str, done: float, place: str = "") -> None:
        self.total, self.done, self.note = total, done, ""
        self.place = place or next((job.place for job in reversed(_jobs) if job.place), "")
        self.name = f"{self.place}: {label}" if self.place else label
        self._unit, self._began = unit, time.monotonic()
        self._start = self._first = self._last = (self._began, done)
        self._advanced = False

    def advance(self, amount: float, total: float | None = None, note: str = "") -> None:
        """Add to what is done."""
        self.total = self.total if total is None else total
        self.done, self.note = self.done + amount, note
        if amount:
            self._last = time.monotonic(), self.done
            if not self._advanced:  # what came before was compiling, too
                self._first, self._advanced = self._last, True

    def rate(self) -> float | None:
        """What was done in a second, without the first part if there is more."""
        first = self._first if self._last != self._first else self._start
        took, did = self._last[0] - first[0], self._last[1] - first[1]
        return did / took if self._advanced and took > 0 and did > 0 else None

    def words(self) -> str:
        """How far, how fast, how long still, and the numbers that matter."""
        rate, parts = self.rate(), []
        if self._unit or self.total is not None:
            parts.append(self._count())
        if rate is not None:
            shown = f"{rate / 1e6:,.1f} MB" if self._unit == "bytes" else f"{rate:,.3g} {self._unit}"
            parts.append(f"{shown.strip()}/s")
            if self.total is not None and self.done < self.total:
                left = (self.total - self.done) / rate - (time.monotonic() - self._last[0])
                parts.append(f"{_clock(max(left, 0.0))} left")
        else:
            parts.append(_clock(time.monotonic() - self._began))
        return ", ".join([*parts, *([self.note] if self.note else [])])

    def _count(self) -> str:
        scale, unit = (1e6, "MB") if self._unit == "bytes" else (1, self._unit)
        form = ",.1f" if self._unit == "bytes" else ",.0f"
        of = "" if self.total is None else f" of {self.total / scale:{form}}"
        return f"{self.done / scale:{form}}{of} {unit}".rstrip()


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


EVERY = 60.0
"""Seconds between two lines where no terminal shows bars."""
_jobs: list[_Job] = []
"""What goes on, each inside the one before."""
_displays: list[_Display] = []
"""What shows them: one, as long as anything goes on."""


@contextlib.contextmanager
def _shown(job: _Job) -> Iterator[None]:
    """Show a job, with those that it is inside of; a thread of somebody else's shows nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _jobs.append(job)
    try:
        if _displays:
            yield
            return
        display = _Display()
        _displays.append(display)
        try:
            with display.running():
                yield
        finally:
            _displays.remove(display)
    finally:
        _jobs.remove(job)


class _Display:
    """Bars on a terminal, a line a minute elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self.is_terminal = self._console.is_terminal

    def say(self, words: str) -> None:
        """Print a line."""
        print(printable(words), file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Show what goes on, until it is over."""
        if self.is_terminal:
            with self._live():
                yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._tell, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _tell(self, over: threading.Event) -> None:
        while not over.wait(EVERY):
            if jobs := list(_jobs):
                self.say(f"{jobs[-1].name}: {jobs[-1].words()}")

    def _live(self) -> Any:
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        spinner = Spinner("dots")

        def shown() -> Table:
            table = Table.grid(padding=(0, 1))
            for job in [job for job in list(_jobs) if job.total is not None] or list(_jobs)[-1:]:
                bar = Text("") if job.total is None else ProgressBar(job.total, job.done, width=24)
                table.add_row(spinner, Text(job.name), bar, Text(job.words()))
            return table

        # Whoever prints to standard output meanwhile means a file or a pipe.
        return Live(
            get_renderable=shown,
            console=self._console,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=sys.stdout.isatty(),
        )


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

"""What a command did, called in this process: its exit code, and words that are fit to be read."""

from __future__ import annotations

import contextlib
import io
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcetm.cli import main

SECONDS = 30.0
"""A command that takes longer waits for something that never comes."""


@dataclass(frozen=True)
class Outcome:
    """An exit code and everything that was printed."""

    code: int
    out: str
    err: str


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """End what waits for ever; the tests would wait with it."""

    def stop(number: int, frame: object) -> None:
        raise AssertionError(f"still running after {SECONDS:g} seconds")

    former = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)


def run(*arguments: object) -> Outcome:
    """Run a command as a person would type it; what escapes from it fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with no_hang(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())


def assert_refused(outcome: Outcome, words: str) -> None:
    """One sentence (a list where there are several faults) with these words, exit code 2, nothing else."""
    assert (outcome.code, outcome.out) == (2, ""), outcome
    first, *others = outcome.err.removesuffix("\n").split("\n")
    assert first.startswith("mcetm: "), outcome.err
    assert first.endswith(("." if not others else "faults.", "?")), outcome.err
    assert all(line.startswith("  ") for line in others), outcome.err
    assert all(line.isprintable() for line in (first, *others)), outcome.err
    assert words in outcome.err, outcome.err
    assert len(outcome.err) < 3000, outcome.err


def contents(folder: Path) -> list[str]:
    """Everything in a folder, by name."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

"""What a benchmark measured, row by row: a row that fails is written down, and the others go on."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import jax

from mcetm import UserError
from mcetm_experiments.bench.clock import Spread

Size = Literal["small", "full"]


@dataclass(frozen=True)
class Timed:
    """One figure with all that belongs to it."""

    seconds: Spread
    compile_seconds: float | None = None
    figures: dict[str, float] = field(default_factory=dict)
    """What follows from the time, by name with its unit."""


@dataclass(frozen=True)
class SheetRow:
    """The same work done by one of several means."""

    work: str
    variant: str
    measured: Timed | None
    failure: str | None = None
    """Why there is no figure."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        found = {"work": self.work, "variant": self.variant}
        return {**found, **({"failure": self.failure} if self.measured is None else asdict(self.measured))}


class Sheet:
    """Rows of one benchmark, within a given time."""

    def __init__(self, size: Size, seconds: float) -> None:
        self.size: Size = size
        self.rows: list[SheetRow] = []
        self.notes: list[str] = []
        self.not_begun: list[str] = []
        """What the time did not suffice for."""
        self._given, self._began = seconds, time.monotonic()

    @property
    def full(self) -> bool:
        """Whether the sizes are the paper's."""
        return self.size == "full"

    def row(self, work: str, variant: str, job: Callable[[], Timed]) -> Timed | None:
        """Measure and write down; nothing that a job raises stops the others."""
        if self.rows and time.monotonic() - self._began > self._given:
            self.not_begun.append(f"{work} ({variant})")
            return None
        measured = failure = None
        print(f"{work}: {variant} …", file=sys.stderr, flush=True)
        try:
            measured = job()
        except UserError:
            raise
        except Exception as error:  # an accelerator's memory may be too small for one row
            failure = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
        self.rows.append(SheetRow(work, variant, measured, failure))
        # What this row compiled and left on the device must not hinder the next.
        jax.clear_caches()
        gc.collect()
        return measured

    def note(self, sentence: str) -> None:
        """Say something about the whole, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "size": self.size,
            "rows": [row.to_dict() for row in self.rows],
            "not_begun": self.not_begun,
            "notes": self.notes,
        }

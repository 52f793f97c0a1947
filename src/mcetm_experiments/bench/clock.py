"""Measuring a job: once to warm up, then a few times; the median counts, the quartiles are its spread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np


@dataclass(frozen=True)
class Spread:
    """Seconds of the same work, several times."""

    median: float
    low: float
    """A quarter of the times were shorter."""
    high: float
    """A quarter were longer."""
    repeats: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """Of these times."""
        low, median, high = np.percentile(np.asarray(seconds), (25, 50, 75))
        return cls(float(median), float(low), float(high), len(seconds))

    def each(self, count: int) -> Spread:
        """The time of one of `count` equal parts."""
        return Spread(self.median / count, self.low / count, self.high / count, self.repeats)


def clock(job: Callable[[], Any], *, repeats: int = 10, most: float = 10.0, warm: bool = False) -> Spread:
    """Times of a job that has finished when it returns; after `most` seconds no other one is begun.

    `warm` says that it ran before: it is not run once for nothing.
    """
    if not warm:
        job()
    seconds: list[float] = []
    while len(seconds) < repeats and (not seconds or sum(seconds) < most):
        began = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - began)
    return Spread.of(seconds)


@dataclass(frozen=True)
class Compiled:
    """A program for arguments of these shapes, what it took to make it, and what it needs to run."""

    program: Callable[..., Any]
    seconds: float
    gigabytes: float | None
    """Device memory beside arguments and results, where the compiler says."""


def compile_for(function: Callable[..., Any], *arguments: Any) -> Compiled:
    """Trace and compile, without running."""
    began = time.perf_counter()
    program = eqx.filter_jit(function).lower(*arguments).compile()  # pyright: ignore[reportFunctionMemberAccess]
    seconds = time.perf_counter() - began
    try:
        size = program.compiled.memory_analysis().temp_size_in_bytes / 1e9
    except (AttributeError, NotImplementedError, jax.errors.JaxRuntimeError):
        size = None
    return Compiled(lambda *given: jax.block_until_ready(program(*given)), seconds, size)


def from_history(history: Sequence[dict[str, Any]]) -> tuple[Spread, float]:
    """Times of a training's chunks, and of its compilation: what the first took above the others."""
    chunks = Spread.of([line["seconds"] for line in history[1:]])
    return chunks, max(0.0, history[0]["seconds"] - chunks.median)

"""Metrics as JSON lines: one line per chunk of steps, readable while the job runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from pydantic import AfterValidator, ConfigDict, Field

from mcetm.documents import FileError, Record, Text, checked, parse, read_bytes
from mcetm.files import append_text, write_text


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of a number, or of lists of equal length inside each other; anything else is refused."""
    if isinstance(value, list):
        inner = {_shape(part) for part in value}
        if len(inner) == 1:
            return len(value), *inner.pop()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return ()
    raise ValueError("should be a number, or numbers in lists of equal length")


def _numbers(value: Any) -> Any:
    _shape(value)
    return value


NOTED = dict[Text, Annotated[Any, AfterValidator(_numbers)]]
"""The schema of metrics as they are written down."""


class _Line(Record):
    """One line of `metrics.jsonl`: the step after which it was written, and metrics."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: NOTED = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]

    step: Annotated[int, Field(ge=1, le=2**40)]


class Rows(eqx.Module):
    """A metric of every row of a minibatch; means are taken of all steps of a chunk at once, not of each."""

    values: Float[Array, "*members rows"]


Metrics = Mapping[str, Array | Rows]
"""Of one step: a number, one for each member, or rows."""


def mean_over_steps(values: Array | Rows) -> Array:
    """The mean of a metric that was noted at every step, on the first axis."""
    return values.values.mean(axis=(0, -1)) if isinstance(values, Rows) else values.mean(axis=0)


class MetricsFile:
    """`metrics.jsonl` of a job; appending is one write, so a killed job loses at most its last line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: Mapping[str, Any]) -> None:
        """Add one line; arrays become lists."""
        append_text(self.path, json.dumps({name: plain(value) for name, value in line.items()}) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All complete lines; a file that nobody here wrote so is refused."""
        if not self.path.exists():
            return []
        *texts, begun = read_bytes(self.path, largest=2**30).split(b"\n")
        lines: list[dict[str, Any]] = []
        shapes: dict[str, tuple[int, ...]] = {}
        for number, text in enumerate(texts, 1):
            place = f"line {number}"
            line = parse(self.path, text, place)
            checked(self.path, line, _Line, place)
            if lines and line["step"] <= lines[-1]["step"]:
                raise FileError(self.path, f"{place}: 'step' is not above that of the line before")
            for name, value in line.items():
                if shapes.setdefault(name, _shape(value)) != _shape(value):
                    raise FileError(self.path, f"{place}: {name!r:.100} is not as long as in lines before")
            lines.append(line)
        del begun  # what follows the last line's end is what a killed job was writing
        return lines

    def rewind(self, step: int) -> None:
        """Forget what was logged after a step, before a resumed job logs it again."""
        if not self.path.exists():
            return
        kept = "".join(json.dumps(line) + "\n" for line in self.read() if line["step"] <= step)
        if self.path.read_bytes() != kept.encode():
            write_text(self.path, kept)


def plain(value: Any) -> Any:
    """A number or a (nested) list of numbers."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array.tolist()

"""Metrics as JSON lines: one line per chunk of steps, readable while the job runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from mcetm.files import append_text, write_text


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
        """All complete lines."""
        if not self.path.exists():
            return []
        lines = []
        for text in self.path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except ValueError:
                break  # the line a killed job was writing
        return lines

    def rewind(self, step: int) -> None:
        """Forget what was logged after a step, before a resumed job logs it again."""
        if not self.path.exists():
            return
        kept = [line for line in self.read() if line["step"] <= step]
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in kept))


def plain(value: Any) -> Any:
    """A number or a (nested) list of numbers."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array.tolist()

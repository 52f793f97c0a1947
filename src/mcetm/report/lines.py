"""Lines over steps: as data for a chart that can be zoomed, and drawn for paper. Both show the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.console import one_line
from mcetm.report.figures import STYLES, figure, legend_below
from mcetm.report.html import chart

_MOST = 400
"""Points of a line; a longer one is thinned."""


@dataclass(frozen=True)
class Line:
    """A mean over seeds, and the band that spans them."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None

    @classmethod
    def of_seeds(cls, name: str, steps: Sequence[float], values: np.ndarray) -> Line:
        """Of an array (steps, seeds)."""
        picked = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), _MOST)).astype(int))
        values = values[picked]
        several = values.shape[1] > 1
        return cls(
            name,
            tuple(float(steps[i]) for i in picked),
            tuple(values.mean(axis=1).tolist()),
            tuple(values.min(axis=1).tolist()) if several else None,
            tuple(values.max(axis=1).tolist()) if several else None,
        )


def lines_figure(
    path: Path,
    words: str,
    lines: Sequence[Line],
    *,
    up: str,
    along: str = "updates",
    level: float | None = None,
) -> str:
    """The chart as a part of a page; the drawn picture is written to `path`.

    `level` is a number to compare with, such as what the data's own episodes earned.
    """
    _draw(path, lines, up=up, along=along, level=level)
    steps = sorted({step for line in lines for step in line.steps})
    place = {step: i for i, step in enumerate(steps)}

    def at_steps(line: Line, values: Sequence[float] | None) -> list[float | None] | None:
        if values is None:
            return None
        found: list[float | None] = [None] * len(steps)
        for step, value in zip(line.steps, values, strict=True):
            found[place[step]] = _short(value)
        return found

    drawn: list[dict[str, Any]] = [
        {
            "name": one_line(line.name),
            "style": i % len(STYLES),
            "dash": i % 3,
            "values": at_steps(line, line.values),
            "low": at_steps(line, line.low),
            "high": at_steps(line, line.high),
        }
        for i, line in enumerate(lines)
    ]
    if level is not None:
        flat = [_short(level)] * len(steps)
        drawn.append({"name": "the log", "style": 11, "dash": 3, "values": flat, "low": None, "high": None})
    return chart(path, words, {"x": steps, "along": along, "up": up, "lines": drawn})


def _short(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _draw(path: Path, lines: Sequence[Line], *, up: str, along: str, level: float | None) -> None:
    with figure(path, width=7.0, height=3.6, formulas=False) as drawn:
        axis = drawn.subplots()
        for line, style in zip(lines, STYLES * (1 + len(lines) // len(STYLES)), strict=False):
            every = max(1, len(line.steps) // 8)
            axis.plot(
                line.steps, line.values, label=one_line(line.name), markersize=4, markevery=every, **style
            )
            if line.low is not None and line.high is not None:
                axis.fill_between(line.steps, line.low, line.high, color=style["color"], alpha=0.15)
        if level is not None:
            axis.axhline(level, color="0.5", linewidth=1, label="the log")
        axis.set(xlabel=along, ylabel=up)
        if len(lines) > 5:
            legend_below(drawn, [axis], ncols=3, fontsize=8)
        else:
            axis.legend(fontsize=8)

"""How well the model of a run predicts held-out episodes, as a part of its page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mcetm.dynamics.accuracy import Accuracy, OpenLoop
from mcetm.report.html import table, text
from mcetm.report.lines import Line, lines_figure

_HALF = 0.5
"""A prediction so many spreads of the log off is told as the end of what can be used."""
_SHOWN = 20
"""Columns in the table; of more the worst are shown."""


def accuracy_part(path: Path, found: Accuracy) -> str:
    """Words, a table of one step by column, and a chart of what happens open loop."""
    said = "".join(f"<p>{text(sentence)}</p>" for sentence in words_of(found))
    rows = sorted(zip(found.columns, found.one_step, strict=True), key=lambda row: -(row[1] or 0.0))
    shown = [(name, "it never changes" if share is None else f"{share:.1%}") for name, share in rows[:_SHOWN]]
    more = f"<p>{len(rows) - _SHOWN} more columns have smaller errors.</p>" if len(rows) > _SHOWN else ""
    chart = "" if found.open_loop is None else _chart(path, found.open_loop)
    return said + table(("column", "error of one step"), shown) + more + chart


def words_of(found: Accuracy) -> list[str]:
    """What table and chart say, in sentences."""
    known = [
        (share, name) for name, share in zip(found.columns, found.one_step, strict=True) if share is not None
    ]
    said = [
        f"One step on, in {found.rows:,} held-out rows: an error of 100 % is no better than saying that "
        "nothing changes."
    ]
    if known:
        worst, name = max(known)
        typical = float(np.median([share for share, _ in known]))
        said.append(
            f"The model's error is {typical:.1%} in the middle column, and {worst:.1%} in the worst ({name})."
        )
    if (loop := found.open_loop) is not None:
        steps = len(loop.median)
        typical, nearly_all = (
            next((t for t, error in enumerate(errors) if error > _HALF), steps)
            for errors in (loop.median, loop.high)
        )
        said.append(
            "Open loop, from its own predictions and the recorded actions, it stays within half a spread of "
            f"the log for {typical} of {steps} steps in the middle one of {loop.stretches} stretches, and "
            f"for {nearly_all} in nine of ten."
        )
    return said


def _chart(path: Path, loop: OpenLoop) -> str:
    steps = tuple(float(t) for t in range(1, len(loop.median) + 1))
    lines = [
        Line("the model", steps, loop.median, loop.low, loop.high),
        Line("nothing changes", steps, loop.still),
    ]
    words = (
        "Open-loop error in held-out episodes, in spreads of the log: medians; the band holds 80 % of them."
    )
    return lines_figure(path, words, lines, up="error, in spreads", along="steps")

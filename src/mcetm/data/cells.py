"""Cells of a table as numbers; what is none gets an answer that says what to do."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from mcetm.console import one_line
from mcetm.data.faults import Fault

_TRUTH = {"true": 1.0, "false": 0.0}
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?")
EMPTY = "is empty; fill such cells, or leave the column out"
_FEW = 20
"""Different words at most that look like categories."""


def truth_or(parse: Callable[[str], float]) -> Callable[[str], float]:
    """A flag's cell: 0/1, or True/False as pandas writes them."""
    return lambda cell: _TRUTH[text] if (text := cell.strip().lower()) in _TRUTH else parse(cell)


def parsed(
    name: str, cells: Sequence[str], parse: Callable[[str], float], *, empty: bool, first: int = 0
) -> tuple[np.ndarray, Fault | None]:
    """Numbers of a column's cells, and the first fault; cells that may be empty are not-a-number there."""
    try:
        values = np.array([parse(cell) for cell in cells], np.float64)
    except ValueError:
        values = np.full(len(cells), np.nan)
        if all(cell.strip().lower() in _TRUTH for cell in cells):  # a switch, as programs write it
            parse = truth_or(parse)
    else:
        if np.isfinite(values).all():
            return values, None
    for row, cell in enumerate(cells):
        text = cell.strip()
        if not text and empty:
            continue
        try:
            values[row] = found = parse(cell)
        except ValueError:
            what = EMPTY if not text else no_number(cell, cells)
            return values, Fault(name, what, first + row)
        if not math.isfinite(found) and not (empty and math.isnan(found)):
            return values, Fault(name, f"is {text}", first + row)
    return values, None


def no_number(cell: Any, cells: Sequence[Any]) -> str:
    """What is wrong with a cell that is no number, and what to do about it."""
    text = str(cell).strip()
    if _is_date(cell, text):
        return (
            f"is a date or a time, {text[:40]!r}; name the column as 'time', "
            "or turn it into numbers, such as hours since the start"
        )
    words = {str(other).strip() for other in cells[:10_000]}
    if not any(_is_number(word) for word in words) and 1 < len(words) <= _FEW and len(cells) > len(words):
        shown = ", ".join(one_line(word, 20) or "''" for word in sorted(words)[:4])
        return (
            f"is not numeric, {str(cell)[:40]!r}; the column has {len(words)} different words ({shown}"
            f"{', …' if len(words) > 4 else ''}): make a column of 0 and 1 for each, or leave it out"
        )
    return f"is not numeric, {str(cell)[:40]!r}"


def _is_date(cell: Any, text: str) -> bool:
    return isinstance(cell, datetime.date | datetime.time | np.datetime64) or bool(_DATE.fullmatch(text))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return not text
    return True


def numbers(name: str, values: np.ndarray, faults: list[Fault], *, empty: bool) -> np.ndarray | None:
    """A data frame's column as numbers, or None with the fault noted; only some may be `empty`."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind == "O":
        gone = [_is_missing(value) for value in values]
        for row, value in enumerate(values):
            if gone[row] and not empty:
                faults.append(Fault(name, EMPTY, row))
                return None
            if not gone[row] and not isinstance(value, int | float | Decimal | np.number | np.bool_):
                faults.append(Fault(name, no_number(value, list(values)), row))
                return None
        return np.array([np.nan if no else float(v) for v, no in zip(values, gone, strict=True)])
    if len(values) and values.dtype.kind in "UMm":
        faults.append(Fault(name, no_number(values[0], list(values)), 0))
        return None
    faults.append(Fault(name, f"is not numeric ({values.dtype})"))
    return None


def _is_missing(value: Any) -> bool:
    """None, NaN, and pandas' own sign for nothing, of which nothing can be said to be equal to itself."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))

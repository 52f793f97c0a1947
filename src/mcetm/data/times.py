"""The time of rows: their order within episodes, and where some are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mcetm.data.faults import Fault

FAR = 5.0
"""Usual steps above which a step of time is a gap."""
_SHUFFLED = 0.1
"""Share of rows that may go back in time where nothing labels episodes; more are not in order at all."""
_DAYS = ("%d.%m.%Y", "%Y/%m/%d", "%d.%m.%y")
_HOURS = (" %H:%M:%S", " %H:%M", " %H:%M:%S.%f", "")
_CLOCKS = (*(day + hour for day in _DAYS for hour in _HOURS), "%H:%M:%S", "%H:%M:%S.%f", "%H:%M")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}(.*)")
_SLASHED_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")


@dataclass(frozen=True)
class Arranged:
    """Rows in the order of time."""

    order: np.ndarray | None
    """Which row comes where; None where they already are in order."""
    labels: np.ndarray | None
    """An episode's number for each row, in this order; None where nothing labels them."""
    notes: tuple[str, ...]


class TimeError(Exception):
    """A fault on its way to whoever reads the table."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def seconds_of(name: str, values: np.ndarray) -> tuple[np.ndarray, str]:
    """Times as numbers, and their unit: seconds for dates and clocks, numbers as they are."""
    kind, unit = values.dtype.kind, " s"
    if kind in "biuf":
        found, unit = values.astype(np.float64), ""
    elif kind in "Mm":
        found = values.astype("datetime64[us]" if kind == "M" else "timedelta64[us]").astype(np.int64) / 1e6
        found[np.isnat(values)] = np.nan
    else:
        texts = [_text(value) for value in values]
        try:
            found, unit = np.array(_as_numbers(texts), np.float64), ""
        except ValueError:
            found = _parsed(name, [text.replace(",", ".") for text in texts])
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise TimeError(Fault(name, f"has no time, {str(values[bad[0]])[:40]!r}", int(bad[0])))
    return found, unit


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value).strip()


def _parsed(name: str, texts: Sequence[str]) -> np.ndarray:
    for read in (_as_iso, *(_by(clock) for clock in _CLOCKS)):
        try:
            return np.array(read(texts), np.float64)
        except (ValueError, OverflowError):
            continue
    if found := _slashed(name, texts):
        return np.array(found, np.float64)
    for row, text in enumerate(texts):
        if not text or not any(sign.isdigit() for sign in text):
            raise TimeError(Fault(name, "is empty" if not text else f"is no time, {text[:40]!r}", row))
    message = (
        f"is no time that is known here, {texts[0][:40]!r}; write it as 2024-01-31 13:05:00, or as seconds"
    )
    raise TimeError(Fault(name, message, 0))


def _as_numbers(texts: Sequence[str]) -> list[float]:
    return [float(text) for text in texts]


def _as_iso(texts: Sequence[str]) -> list[float]:
    return [_stamp(datetime.fromisoformat(text)) for text in texts]


def _by(clock: str) -> Any:
    return lambda texts: [_stamp(datetime.strptime(text, clock)) for text in texts]


def _stamp(time: datetime) -> float:
    """Seconds; a time without a zone is taken as it stands."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _slashed(name: str, texts: Sequence[str]) -> list[float] | None:
    """Dates such as 31/01/2024 or 01/31/2024, where some day of the month tells which."""
    matches = [_SLASHED.fullmatch(text) for text in texts]
    parts = [(int(match[1]), int(match[2])) for match in matches if match]
    if len(parts) < len(texts):
        return None
    day_first, month_first = any(a > 12 for a, _ in parts), any(b > 12 for _, b in parts)
    if day_first == month_first:
        message = f"may be day or month first, {texts[0][:40]!r}; write it as 2024-01-31 13:05:00"
        raise TimeError(Fault(name, message, 0))
    date = "%d/%m/%Y" if day_first else "%m/%d/%Y"
    for clock in _SLASHED_CLOCKS:
        try:
            return _by(date + clock)(texts)
        except ValueError:
            continue
    return None


def arrange(
    name: str,
    times: np.ndarray,
    labels: np.ndarray | None,
    ends: np.ndarray,
    split_gaps: float | None,
    unit: str = "",
) -> Arranged:
    """Put rows in order within their episodes, and tell what is missing between them.

    `ends` are the rows that the log itself marks as the last of an episode.
    """
    notes: list[str] = []
    rows = len(times)
    if labels is None:
        back = np.diff(times) < 0.0
        if back.sum() > max(1, _SHUFFLED * rows):
            message = (
                f"goes back at {int(back.sum()):,} of {rows:,} rows, and no column labels episodes: sort the "
                "rows, or name the column that labels them (episode)"
            )
            raise TimeError(Fault(name, message))
        unmarked = back & ~ends[:-1]
        codes = np.concatenate([[0], np.cumsum(back | ends[:-1])]) if rows else np.zeros(0, int)
        if unmarked.any():
            notes.append(
                f"'{name}' goes back at {int(unmarked.sum()):,} rows: an episode is taken to begin there"
            )
        labels, order = (codes if back.any() else None), np.arange(rows)
    else:
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[inverse.reshape(-1)]  # numbered as they first appear
        order = np.lexsort((np.arange(rows), times, codes))
        moved = int(np.count_nonzero(order != np.arange(rows)))
        codes, labels = codes[order], labels[order]
        if moved:
            notes.append(f"rows are put in the order of '{name}' within each episode: {moved:,} have moved")
    times, ends = times[order], ends[order]
    same = codes[1:] == codes[:-1]
    steps = np.diff(times)
    inside = same & ~ends[:-1]
    if not (inside & (steps > 0.0)).any():
        return Arranged(_or_none(order), labels, tuple(notes))
    usual = float(np.median(steps[inside & (steps > 0.0)]))
    words = f"'{name}': one row every {usual:,.6g}{unit}"
    if still := int((inside & (steps == 0.0)).sum()):
        words += f"; {still:,} rows have the time of the row before"
    notes.append(words)
    gaps = inside & (steps > (split_gaps or FAR) * usual)
    if gaps.any():
        where = int(np.argmax(np.where(gaps, steps, 0.0)))
        count, longest = int(gaps.sum()), steps[where] / usual
        found = (
            f"{count:,} gap{'s' if count > 1 else ''} of more than {split_gaps or FAR:g} usual steps in "
            f"'{name}' inside episodes, the longest of {longest:,.0f} after row {where:,}"
        )
        if split_gaps is None:
            notes.append(
                f"{found}: rows on both sides are taken as neighbours; split_gaps ends episodes there"
            )
        else:
            notes.append(f"{found}: episodes end there")
            cuts = np.concatenate([[False], gaps | ~same])
            labels = np.cumsum(cuts)
    return Arranged(_or_none(order), labels, tuple(notes))


def _or_none(order: np.ndarray) -> np.ndarray | None:
    return None if (order == np.arange(len(order))).all() else order

"""Numbers as people read them: with the digits that they need, the same in tables, reports and commands."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

__all__ = ["decimals_of", "number", "numbers", "pair", "with_spread"]

_ALONE = 3
"""Digits of a number by itself."""
_OF_SPREAD = 2
"""Digits of a spread; its mean has the same decimals, as further ones mean nothing."""
_MOST_DIGITS = 7
"""Digits of a number beside a small spread, about what single precision knows."""
_MOST_DECIMALS = 6


def number(value: float) -> str:
    """A number by itself, with three digits at least."""
    return _shown(value, _decimals(value, _ALONE))


def pair(mean: float, spread: float) -> str:
    """Mean ± spread, with two digits of the spread."""
    decimals = _beside([mean], spread)
    return f"{_shown(mean, decimals)} ± {_shown(spread, decimals) if spread else '0'}"


def with_spread(values: Sequence[float]) -> str:
    """Mean ± spread of values, or the value where there is only one."""
    mean = statistics.fmean(values)
    return number(mean) if len(values) == 1 else pair(mean, statistics.stdev(values))


def numbers(values: Sequence[float]) -> list[str]:
    """Values beside each other, with the decimals that tell them apart."""
    if len(values) == 1:
        return [number(values[0])]
    decimals = _beside(values, statistics.stdev(values) if all(map(math.isfinite, values)) else 0.0)
    return [_shown(value, decimals) for value in values]


def decimals_of(mean: float, spread: float | None) -> int:
    """Decimals of a mean beside its spread, or by itself; for tables whose numbers have the same."""
    found = _decimals(mean, _ALONE) if spread is None else _beside([mean], spread)
    return min(found, _MOST_DECIMALS)


def _beside(values: Sequence[float], spread: float) -> int:
    """Decimals of values whose differences are about as large as a spread."""
    size = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not math.isfinite(spread) or spread == 0.0:
        return _decimals(size, _ALONE)
    return min(_decimals(spread, _OF_SPREAD), _decimals(max(size, spread), _MOST_DIGITS))


def _decimals(size: float, digits: int) -> int:
    """Decimals with which a number of this size has so many digits."""
    if size == 0.0 or not math.isfinite(size):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(size))))


def _shown(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return str(value)
    if decimals > _MOST_DECIMALS or abs(value) >= 1e15:
        return f"{value:.{_ALONE}g}"
    text = f"{value:,.{decimals}f}"
    return text if text.strip("-0.,") else text.removeprefix("-")  # rounded to nothing, it has no sign

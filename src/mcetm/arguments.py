"""What a caller of the library passes, looked at where it comes in: a mistake is one sentence there."""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import Any

from mcetm.errors import UserError

MOST_SEED = 2**31 - 1
"""Seeds are counted in 32 bits on the device."""


def whole(name: str, value: Any, *, least: int = 0, most: int = MOST_SEED) -> int:
    """A whole number between two others; NumPy's count too, truth values do not."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise UserError(f"'{name}' should be a whole number from {least:,} to {most:,}, not {_shown(value)}.")
    return number


def require(name: str, value: Any, what: str, *kinds: type) -> None:
    """Refuse what is of none of these kinds; `what` says in words what is wanted."""
    if not isinstance(value, kinds):
        raise UserError(f"'{name}' should be {what}, not {_shown(value)}.")


def path_of(name: str, value: Any) -> Path:
    """A path, given as text or as a path."""
    require(name, value, "a path", str, os.PathLike)
    return Path(value)


def _shown(value: Any) -> str:
    """A value, in a few characters: a large one by its kind."""
    plain = isinstance(value, str | bool | int | float | bytes) or value is None
    return f"{value!r:.60}" if plain else f"a {type(value).__name__}"

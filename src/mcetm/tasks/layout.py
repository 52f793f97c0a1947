"""How a space with parts (a dictionary, a tuple) is laid out as one vector, in logs as in simulators.

Parts come in the order of their keys, a tuple's in their own order, each array row by row. Every number has a
name that says where it was: `goal[0]`, `arm/0[2]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mcetm.console import one_line


@dataclass(frozen=True)
class Part:
    """One array of a space."""

    path: tuple[str | int, ...]
    """Keys of dictionaries and places in tuples that lead to it."""
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def called(self) -> str:
        """Its name."""
        return "/".join(map(str, self.path))


def names_of(parts: Sequence[Part]) -> tuple[str, ...] | None:
    """A name for each number, where a space has parts."""
    if not any(part.path for part in parts):
        return None
    return tuple(
        part.called if part.size == 1 else f"{part.called}[{i}]" for part in parts for i in range(part.size)
    )


def said(what: str, parts: Sequence[Part]) -> str | None:
    """A sentence about the layout, where there is anything to say."""
    if not any(part.path for part in parts):
        return None
    listed = ", ".join(f"{one_line(part.called)} ({part.size})" for part in parts[:8])
    more = f" and {len(parts) - 8} more" if len(parts) > 8 else ""
    return f"{what} with parts are laid out as one vector: {listed}{more}"


def is_image(shape: tuple[int, ...], dtype: str) -> bool:
    """Whether an array is rather a picture than some numbers."""
    return len(shape) > 2 or (len(shape) == 2 and dtype == "uint8")

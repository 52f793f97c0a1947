"""How much memory there is, and how libraries say that there is no more."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["free_memory", "is_shortage"]

_LIMITS = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Bytes that can be had without swapping, in a container no more than it may; None if nobody says."""
    known = [found for found in (_of_machine(), _of_container()) if found is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        return _numbers(Path("/proc/meminfo"))["MemAvailable:"] * 1024
    return None


def _of_container() -> int | None:
    """What Linux still allows this group of processes; pages of files do not count, they can go."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        most, used = (int((_LIMITS / f"memory.{name}").read_text()) for name in ("max", "current"))
        pages = _numbers(_LIMITS / "memory.stat")
        return max(0, most - used + pages["active_file"] + pages["inactive_file"])
    return None


def _numbers(path: Path) -> dict[str, int]:
    """A file of the system's: a name and a number on each line."""
    cells = (line.split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number, *_ in cells}


_WORDS = ("RESOURCE_EXHAUSTED", "Out of memory")
"""XLA has no class for it; what it says depends on where the memory was asked for."""


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that memory ran out: Python's, NumPy's or XLA's."""
    if isinstance(error, RuntimeError):
        return any(words in str(error) for words in _WORDS)
    return isinstance(error, MemoryError)

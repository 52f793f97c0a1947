"""One process at a time trains in a folder.

The system locks the folder itself and lets go of it when the process ends, however it ends: nothing is left
behind, and a process that was killed blocks nobody. Where folders cannot be locked, a file in it is.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcetm.errors import UserError
from mcetm.files import make_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_FILE = ".lock"
_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLOCK}
"""What the system says of a lock that somebody else has."""
_PARTIAL = re.compile(r"\..+\.[A-Za-z0-9-]+\.\d+\.[0-9a-f]{8}\.partial", re.DOTALL)
"""What `atomic_write` calls a file that is being written."""


class BusyError(UserError):
    """Another process trains in this folder at the moment."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Have a folder for oneself; it is made where there is none, and goes again if it is empty at the end.

    What is half-written in it is then nobody's, and is deleted.
    """
    make_folder(folder)
    with contextlib.ExitStack() as held:
        if not any(_lock(folder, place, flags, held) for place, flags in _places(folder)):
            print(
                f"{folder} cannot be locked here: see to it that no other process trains in it.",
                file=sys.stderr,
            )
        for path in folder.rglob(".*.partial"):
            if _PARTIAL.fullmatch(path.name):
                path.unlink(missing_ok=True)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()


def is_locked(folder: Path) -> bool:
    """Whether a process has this folder for itself at the moment; whoever asks blocks nobody for long."""
    if not folder.is_dir():
        return False
    try:
        with contextlib.ExitStack() as held:
            for place, flags in _places(folder):
                if place == folder or place.exists():
                    _lock(folder, place, flags, held)
    except BusyError:
        return True
    except UserError:  # it has gone meanwhile
        return False
    return False


def is_free_for_a_run(folder: Path) -> bool:
    """Whether a folder holds nothing but what a run leaves that was killed before its first file."""
    return all(path.name == _FILE or _PARTIAL.fullmatch(path.name) for path in folder.iterdir())


def _places(folder: Path) -> list[tuple[Path, int]]:
    """What can be locked, and how it is opened for that; network file systems lock only what is writable."""
    by_file = (folder / _FILE, os.O_RDWR | os.O_CREAT)
    return [by_file] if fcntl is None else [(folder, os.O_RDONLY), by_file]


def _lock(folder: Path, place: Path, flags: int, held: contextlib.ExitStack) -> bool:
    """Lock a place that stands for a folder; False where the system has no such lock."""
    try:
        descriptor = os.open(place, flags)
    except OSError as error:
        raise UserError(f"Cannot open {place}: {error.strerror}.") from None
    held.callback(os.close, descriptor)
    try:
        _lock_descriptor(descriptor)
    except OSError as error:
        if error.errno in _TAKEN:
            raise BusyError(
                f"Another process is training in {folder}; wait for it, or stop it first."
            ) from None
        return False
    return True


def _lock_descriptor(descriptor: int) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    msvcrt: Any = importlib.import_module("msvcrt")  # Windows
    msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

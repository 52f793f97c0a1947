"""Files that appear complete or not at all, and the folders the library looks in."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcetm.errors import UserError

__all__ = ["atomic_write", "cache_folder", "data_folders", "find_file", "sha256_of", "write_json"]

_HOST = re.sub(r"[^A-Za-z0-9]", "-", socket.gethostname())
_REFUSALS = {
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EISDIR, errno.ENAMETOOLONG,
    errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS,
}  # fmt: skip


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on failure it vanishes.

    A kill in the middle can leave the temporary file; the next write to the same path removes it.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot create the folder {path.parent}: {error.strerror or error}.") from None
    _remove_leftovers(path)
    # Host and process name the writer, so that a later one can tell whether it still lives.
    temporary = path.with_name(f".{path.name}.{_HOST}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno not in _REFUSALS:  # a network's error, say, is not about this file
            raise
        raise UserError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write plain data, whole or not at all; NumPy's arrays and numbers become lists and numbers."""

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} has no place in JSON")

    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, default=plain) + "\n", encoding="utf-8")


def _remove_leftovers(path: Path) -> None:
    """Delete temporary files of earlier writers of `path` that are no longer alive."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.{_HOST}.*.partial"):
        pid = leftover.name.split(".")[-3]
        if pid.isdigit() and not _is_alive(int(pid)):
            leftover.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to somebody else
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """Where downloads and collected datasets are kept: `$MCETM_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get("MCETM_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mcetm"


def data_folders() -> list[Path]:
    """Folders searched for data the user already has: those in `$MCETM_DATA`, then the cache."""
    chosen = [Path(p).expanduser() for p in os.environ.get("MCETM_DATA", "").split(os.pathsep) if p]
    return [*chosen, cache_folder()]


def find_file(kind: str, names: list[str], folders: list[Path] | None = None) -> Path | None:
    """The first of these names in a folder (by default a data folder) or in its sub-folder `kind`."""
    for folder in data_folders() if folders is None else folders:
        for name in names:
            for candidate in (folder / kind / name, folder / name):
                if candidate.is_file():
                    return candidate
    return None

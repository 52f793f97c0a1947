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
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from mcetm.errors import UserError

__all__ = [
    "NO_SPACE",
    "REFUSALS",
    "NoRoomError",
    "append_text",
    "atomic_write",
    "cache_folder",
    "check_input",
    "check_output",
    "config_folder",
    "data_folders",
    "find_file",
    "make_folder",
    "path_kind",
    "sha256_of",
    "write_bytes",
    "write_json",
    "write_text",
]

_HOST = re.sub(r"[^A-Za-z0-9]", "-", socket.gethostname())
NO_SPACE = {errno.EDQUOT, errno.EFBIG, errno.ENOSPC}
"""What the system says when a file can grow no further."""
REFUSALS = NO_SPACE | {
    errno.EACCES, errno.EIO, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG,
    errno.ENOTDIR, errno.EPERM, errno.EROFS,
}  # fmt: skip
"""What the system says when a path cannot be used; each is the user's to hear, in one sentence."""
_LONGEST_NAME = 128


class NoRoomError(UserError):
    """A disk has no room for what was to be written."""


def path_kind(path: Path) -> Literal["file", "folder", "other", "nothing"]:
    """What is at a path, links followed; "other" are devices, pipes and sockets, where reading can hang."""
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except ValueError:  # a NUL in the name: no system has such a file
        return "nothing"
    except OSError as error:
        raise UserError(f"Cannot look at {path}: {error.strerror}.") from None
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def check_input(path: Path) -> None:
    """Refuse to read what is not a plain file: a pipe would never end, a device never be full."""
    kind = path_kind(path)
    if kind == "nothing":
        raise UserError(f"There is no file {path}.")
    if kind != "file":
        raise UserError(f"Cannot read {path}: it is {_NOT_A_FILE[kind]}.")


def check_output(path: Path) -> Path:
    """Where a write to `path` goes, links followed; a folder, device or pipe is refused, never replaced."""
    try:
        target = Path(os.path.realpath(path))
    except (OSError, ValueError) as error:  # the latter for a NUL in the name
        why = getattr(error, "strerror", None) or error
        raise UserError(f"Cannot write {str(path)!r}: {why}.") from None
    kind = path_kind(target)
    if kind in _NOT_A_FILE:
        raise UserError(f"Cannot write {path}: it is {_NOT_A_FILE[kind]}.")
    return target


_NOT_A_FILE = {"folder": "a folder", "other": "a device or a pipe, not a file"}


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path`, on failure it vanishes.

    A kill in the middle can leave the temporary file; the next write to the same path removes it. Whoever
    fills it must hear of every error: `write_bytes` does, and other libraries may not.
    """
    target = check_output(path)
    make_folder(target.parent)
    _remove_leftovers(target)
    # Host and process name the writer, so that a later one can tell whether it still lives.
    writer = f"{_HOST}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = target.with_name(f".{_short(target.name)}.{writer}.partial")
    try:
        with _refusals(path):
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
            _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write a file, whole or not at all: it takes its place once the disk gives back what was written."""
    with atomic_write(path) as temporary:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # some file systems find out only now that they are full
        if sha256_of(temporary) != hashlib.sha256(content).hexdigest():
            raise OSError(errno.EIO, "what was read back is not what was written")


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


def append_text(path: Path, text: str) -> None:
    """Add text to the end of a file; where there is no room for all of it, none is added."""
    target = check_output(path)
    make_folder(target.parent)
    with _refusals(path), target.open("ab", buffering=0) as file:
        end, rest = file.tell(), memoryview(text.encode())
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            file.truncate(end)
            raise


def write_json(path: Path, content: Any) -> None:
    """Write plain data, whole or not at all; NumPy's arrays and numbers become lists and numbers."""

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} has no place in JSON")

    write_text(path, json.dumps(content, indent=1, default=plain) + "\n")


def make_folder(folder: Path) -> None:
    """Make a folder, where there is none, with those that it is in."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # the latter for a NUL in the name
        full = isinstance(error, OSError) and error.errno in NO_SPACE
        raise (NoRoomError if full else UserError)(
            f"Cannot create the folder {folder}: {getattr(error, 'strerror', None) or error}."
        ) from None


@contextlib.contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """What the file system refuses is the user's to hear, in one sentence."""
    try:
        yield
    except OSError as error:
        # A network's error, say, is not about this file.
        if error.errno not in REFUSALS | {errno.ENOENT}:
            raise
        kind = NoRoomError if error.errno in NO_SPACE else UserError
        raise kind(f"Cannot write {path}: {error.strerror}.") from None


def _short(name: str) -> str:
    """A name that leaves room for the writer's; a long one may itself be as long as a name can be."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= _LONGEST_NAME else hashlib.sha256(encoded).hexdigest()


def _remove_leftovers(path: Path) -> None:
    """Delete temporary files of earlier writers of `path` that are no longer alive."""
    for leftover in path.parent.glob(f".{glob.escape(_short(path.name))}.{_HOST}.*.partial"):
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


def config_folder() -> Path:
    """Where the user's own choices are kept: `$MCETM_CONFIG`, else the user's configuration folder."""
    if chosen := os.environ.get("MCETM_CONFIG"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "mcetm"


def data_folders() -> list[Path]:
    """Folders searched for data the user already has: those in `$MCETM_DATA`, then the cache."""
    chosen = [Path(p).expanduser() for p in os.environ.get("MCETM_DATA", "").split(os.pathsep) if p]
    return [*chosen, cache_folder()]


class Folders:
    """A folder and parts of it that are elsewhere: those are there, any other in the folder itself."""

    def __init__(self, folder: Path, elsewhere: Mapping[str, Path]) -> None:
        self._folder, self._elsewhere = folder, elsewhere

    def __truediv__(self, name: str) -> Path:
        return self._elsewhere.get(name, self._folder / name)


def find_file(kind: str, names: list[str], folders: list[Path] | None = None) -> Path | None:
    """The first of these names in a folder (by default a data folder) or in its sub-folder `kind`."""
    for folder in data_folders() if folders is None else folders:
        for name in names:
            for candidate in (folder / kind / name, folder / name):
                if path_kind(candidate) == "file":
                    return candidate
    return None

"""Logs that memory cannot hold: their file is mapped, and only rows that are asked for are read from it.

That needs numbers as they lie in memory: HDF5 in D4RL's layout with all fields, neither compressed nor in
chunks. Anything else is written down that way once, in the cache.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from mcetm.console import progress, say
from mcetm.data import header
from mcetm.data.columns import columns_beside
from mcetm.data.d4rl import HEADER, NAMES, header_of
from mcetm.data.faults import DataError, Fault
from mcetm.data.parts import parts_of
from mcetm.data.streamed import WINDOW, StreamedTransitions
from mcetm.data.transitions import FIELDS, Metadata, Transitions
from mcetm.data.validate import MIN_TRANSITIONS, ReadOptions
from mcetm.errors import UserError
from mcetm.files import atomic_write, cache_folder
from mcetm.formats import hdf5_datasets, kind_of, open_hdf5

_FIRST = 1000
"""Rows that are enough to tell the metadata."""
_BLOCK = 1_000_000
_KINDS = ("f4", "f8", "b1", "u1", "i1")
"""Kinds of numbers that are used as they lie in a file."""


class _Mapped(NamedTuple):
    """The fields of a file, of which nothing is read yet."""

    columns: dict[str, np.ndarray]
    release: Callable[[], None]
    """Gives back the memory of what was read."""
    stored: header.Stored


def map_log(path: Path, *, window: int = WINDOW, **options: Unpack[ReadOptions]) -> StreamedTransitions:
    """A log whose rows stay in its file, or in a copy in the cache where the file cannot be mapped.

    Every row is read once: a file of ours must have its checksum, others are checked as all logs are.
    """
    mapped = _mapped(path) if kind_of(path) == "hdf5" else None
    if mapped is not None and mapped.stored.checksum is not None:
        log = _view(mapped, _metadata(mapped, options), window)
        if log.checksum != mapped.stored.checksum:
            raise UserError(
                f"{path} was changed or damaged after it was written: its data differ from the checksum "
                "stored with them."
            )
        return log
    copy = cache_folder() / "mapped" / f"{path.stem}-{_fingerprint(path, options)}.hdf5"
    if not copy.exists():
        parts = parts_of(path, **options)
        metadata, rows = _measured(parts, path, options)
        if mapped is not None and rows == len(mapped.columns["obs"]):
            return _view(mapped, metadata, window)
        say(f"{path} cannot be mapped as it is; it is copied once, to {copy}.")
        _write(parts, copy, metadata, rows)
    return map_log(copy, window=window).with_metadata(source=str(path))


def _mapped(path: Path) -> _Mapped | None:
    """The fields of a file of HDF5; None where one is missing or does not lie there in one piece."""
    found: dict[str, tuple[Any, int, int, tuple[int, ...]]] = {}
    with open_hdf5(path) as file:
        stored = header_of(file, path)
        for field, item in zip(NAMES, hdf5_datasets(file, NAMES.values()).values(), strict=True):
            wide = 2 if field in ("obs", "action", "next_obs") else 1
            if item is None or item.dtype.str[1:] not in _KINDS or len(item.shape) != wide:
                return None
            if item.size and item.id.get_offset() is None:  # in chunks, perhaps compressed
                return None
            found[field] = (item.dtype, item.size, item.id.get_offset() or 0, item.shape)
    if len({shape[0] for *_, shape in found.values()}) > 1 or not found["obs"][1]:
        return None
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    columns = {
        field: np.frombuffer(content, kind, size, offset).reshape(shape)
        for field, (kind, size, offset, shape) in found.items()
    }
    unused = getattr(mmap, "MADV_DONTNEED", None)
    return _Mapped(columns, (lambda: None) if unused is None else lambda: content.madvise(unused), stored)


def _view(mapped: _Mapped, metadata: Metadata, window: int) -> StreamedTransitions:
    """All episodes of a file."""
    found, rows = [], len(mapped.columns["obs"])
    for first in range(0, rows, _BLOCK):
        part = slice(first, first + _BLOCK)
        ended = (mapped.columns["terminated"][part] != 0) | (mapped.columns["truncated"][part] != 0)
        found.append(np.flatnonzero(ended) + first + 1)
    mapped.release()
    ends = np.concatenate(found)
    if not ends.size or ends[-1] != rows:
        ends = np.append(ends, rows)
    starts = np.append(0, ends[:-1])
    return StreamedTransitions(mapped.columns, starts, ends, metadata, window=window, release=mapped.release)


def _metadata(mapped: _Mapped, options: ReadOptions) -> Metadata:
    """What the file and the options say, as they would of the first rows alone."""
    stored = replace(mapped.stored, checksum=None)
    present = {name: mapped.columns[name][:_FIRST] for name in FIELDS if name not in stored.metadata.absent}
    known = stored.build(present, infos={}, **{**options, "min_transitions": 1}).metadata
    return replace(known, absent=stored.metadata.absent, dropped=stored.metadata.dropped)


def _measured(parts: Iterable[Transitions], path: Path, options: ReadOptions) -> tuple[Metadata, int]:
    """What a file says of itself, and its rows that can be used; each of them is checked."""
    metadata, rows, dropped, cut = None, 0, 0, False
    with progress(f"checking {path.name}", None, unit="rows") as advance:
        for part in parts:
            metadata, dropped = metadata or part.metadata, dropped + part.metadata.dropped
            rows, cut = rows + len(part), cut or bool(part.truncated[:-1].any())
            advance(len(part))
    least = max(1, MIN_TRANSITIONS if (given := options.get("min_transitions")) is None else given)
    if metadata is None or rows < least:
        what = f"only {rows} usable transitions, and at least {least} are needed"
        raise DataError(str(path), [Fault("obs", what)])
    return replace(metadata, dropped=dropped), rows


def _write(parts: Iterable[Transitions], path: Path, metadata: Metadata, rows: int) -> None:
    """A file of ours that can be mapped, whole or not at all."""
    import h5py

    with atomic_write(path) as temporary:
        with (
            h5py.File(temporary, "x") as file,
            progress(f"writing {path.name}", rows, unit="rows") as advance,
        ):
            first = 0
            for part in parts:
                for field, name in NAMES.items():
                    array = getattr(part, field)
                    if name not in file:
                        file.create_dataset(name, (rows, *array.shape[1:]), array.dtype)
                    rows_of: Any = file[name]
                    rows_of[first : first + len(part)] = array
                first += len(part)
                advance(len(part))
        written = _mapped(temporary)
        if written is None or first != rows:
            raise UserError(f"{metadata.source} changed while it was copied.")
        log = _view(written, metadata, WINDOW)
        with h5py.File(temporary, "r+") as file:
            file.create_dataset(HEADER, data=np.bytes_(header.encode(log).encode()))


def _fingerprint(path: Path, options: ReadOptions) -> str:
    """Changes with the file and with how it is read."""
    about = path.stat()
    file = f"{path.resolve()} {about.st_size} {about.st_mtime_ns}"
    said = f"{file} {sorted(options.items())} {columns_beside(path)}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]

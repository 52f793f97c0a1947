"""One door for files: read any supported kind, told by its content; write `.npz` or HDF5."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Unpack

from mcetm.data.d4rl import read_d4rl, write_d4rl
from mcetm.data.npz import read_transitions_npz, write_transitions_npz
from mcetm.data.tables import read_csv, read_parquet
from mcetm.data.transitions import Transitions
from mcetm.data.validate import ReadOptions
from mcetm.errors import UserError
from mcetm.files import check_output, path_kind
from mcetm.formats import kind_of

_READERS = {"npz": read_transitions_npz, "csv": read_csv, "parquet": read_parquet}


def read_file(path: Path, *, infos: bool = False, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from an HDF5 (D4RL layout), `.npz`, CSV or Parquet file; `infos` keeps HDF5's too."""
    kind = kind_of(path)
    if kind == "hdf5":
        return read_d4rl(path, infos="all" if infos else (), **options)
    return _READERS[kind](path, **options)


def write_file(transitions: Transitions, path: Path, *, compress: bool = False) -> None:
    """Write by the suffix: `.npz`, or `.hdf5`/`.h5` in D4RL's layout."""
    check_writable(path)
    if path.suffix.lower() == ".npz":
        write_transitions_npz(transitions, path, compress=compress)
    else:
        write_d4rl(transitions, path, compress=compress)


def check_writable(path: Path) -> bool:
    """Refuse a bad name before the work that would be lost on it; whether there is a file to replace."""
    if path.suffix.lower() not in (".npz", ".hdf5", ".h5"):
        raise UserError(f"Cannot write {path}: the name must end in .npz, .hdf5 or .h5.")
    target = check_output(path)
    existing = next(parent for parent in target.parents if path_kind(parent) != "nothing")
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise UserError(f"Cannot write {path}: {existing} is not a folder that can be written to.")
    return path_kind(target) == "file"

"""Good files of every kind, to be spoilt; each has the same 21 rows in three episodes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mcetm.data import Metadata, Transitions
from tests.conftest import random_fields, write_hdf5

ROWS = 21
BOUNDS = Metadata(action_low=(-1.0, -1.0), action_high=(1.0, 1.0))


def good_log() -> Transitions:
    """The log that all the files hold."""
    return Transitions.from_arrays(**random_fields(), metadata=BOUNDS)


def d4rl(folder: Path, **changes: Any) -> Path:
    """A file in D4RL's layout and of another maker; a field that is None is left out."""
    fields = {name: array for name, array in {**random_fields(), **changes}.items() if array is not None}
    return write_hdf5(folder / "log.hdf5", fields)


def edited(folder: Path, edit: Callable[[Any], object]) -> Path:
    """A file in D4RL's layout after somebody has been at it with h5py."""
    path = d4rl(folder)
    with h5py.File(path, "a") as file:
        edit(file)
    return path


def replaced(folder: Path, name: str, **options: Any) -> Path:
    """A file in D4RL's layout where one array is another one."""

    def edit(file: Any) -> None:
        del file[name]
        file.create_dataset(name, **options)

    return edited(folder, edit)


def ours(folder: Path, suffix: str = ".hdf5") -> Path:
    """A file that this library wrote."""
    path = folder / f"log{suffix}"
    good_log().save(path)
    return path


def with_header(folder: Path, text: str | bytes) -> Path:
    """A file of ours with other metadata."""
    path = ours(folder)
    with h5py.File(path, "a") as file:
        del file["metadata/mcetm"]
        file["metadata/mcetm"] = np.bytes_(text if isinstance(text, bytes) else text.encode())
    return path


def header_of(path: Path) -> dict[str, Any]:
    """The metadata in a file of ours."""
    with h5py.File(path) as file:
        stored: Any = file["metadata/mcetm"]
        return json.loads(stored[()])


def with_field(folder: Path, name: str, value: Any) -> Path:
    """A file of ours where one field of the metadata is another one; `KeyError` leaves it out."""
    header = {**header_of(ours(folder)), name: value}
    if value is KeyError:
        del header[name]
    return with_header(folder, json.dumps(header))


def npz(folder: Path, **changes: Any) -> Path:
    """An `.npz` of another maker; a field that is None is left out."""
    fields = {name: array for name, array in {**random_fields(), **changes}.items() if array is not None}
    np.savez_compressed(folder / "log.npz", allow_pickle=True, **fields)
    return folder / "log.npz"


def npy(array: Any) -> bytes:
    """An array as a member of an `.npz`."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def npy_header(text: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """A member of an `.npz` whose header says what it likes."""
    size = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + text.encode() + body


def zipped(folder: Path, *members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """A zip with these members, whatever they are."""
    with zipfile.ZipFile(folder / "log.npz", "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return folder / "log.npz"


def columns() -> dict[str, list[Any]]:
    """The good log as a table."""
    fields, table = random_fields(), {}
    for field in ("obs", "action", "next_obs"):
        for i, column in enumerate(fields[field].T):
            table[f"{field}_{i}"] = column.tolist()
    return table | {name: fields[name].tolist() for name in ("reward", "terminated", "truncated")}


def csv(
    folder: Path, edit: Callable[[list[str]], list[str]] = lambda lines: lines, /, **changes: Any
) -> Path:
    """A CSV of the good log; `edit` is given its lines, the header first."""
    table = {name: column for name, column in {**columns(), **changes}.items() if column is not None}
    lines = [",".join(table), *(",".join(map(str, cells)) for cells in zip(*table.values(), strict=True))]
    path = folder / "log.csv"
    path.write_text("\n".join(edit(lines)) + "\n", newline="", encoding="utf-8")
    return path


def raw(folder: Path, name: str, content: bytes) -> Path:
    """Any bytes under any name."""
    (folder / name).write_bytes(content)
    return folder / name


def parquet(folder: Path, **changes: Any) -> Path:
    """A Parquet file of the good log; a column that is None is left out."""
    import pyarrow
    import pyarrow.parquet

    table = {name: column for name, column in {**columns(), **changes}.items() if column is not None}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "log.parquet")
    return folder / "log.parquet"

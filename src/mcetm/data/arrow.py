"""Arrow and Parquet files of anybody's: only the wanted columns, bounded, and checked before they are used.

Arrow's own readers trust much of what a file says of itself. So an array is validated in full, offsets and
all, before any number of it is looked at.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mcetm.console import one_line
from mcetm.data.validate import DataError, Fault
from mcetm.errors import UserError
from mcetm.files import check_input
from mcetm.formats import check_size, unreadable

_NUMBER_BYTES = 8


def import_pyarrow(path: Path) -> Any:
    """Pyarrow, or one sentence that says how to get it."""
    try:
        for part in ("ipc", "parquet"):
            importlib.import_module(f"pyarrow.{part}")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise UserError(f'Reading {path} needs pyarrow: pip install "mcetm[parquet]".') from None


def read_columns(
    paths: Sequence[Path], form: Literal["arrow", "parquet"], wanted: Iterable[str]
) -> dict[str, Any]:
    """The wanted columns of all the files together, each as one Arrow array."""
    pa = import_pyarrow(paths[0])
    names, batches = list(wanted), []
    for path in paths:
        check_input(path)
        taken = 0
        batches_of = _parquet_batches if form == "parquet" else _arrow_batches
        try:
            with path.open("rb") as file:
                for batch in batches_of(pa, path, file, names):
                    batch.validate(full=True)
                    batches.append(batch.select(names))
                    # Many batches can point to the same bytes of the file.
                    taken += batch.nbytes
                    check_size(path, {"its columns": taken})
        except UserError:
            raise
        except Exception as error:  # Arrow's, and those of the many layers below it
            raise unreadable(path, error) from None
    if not batches:
        raise DataError(str(paths[0]), [Fault(names[0], "has no rows")])
    try:
        table = pa.Table.from_batches(batches).combine_chunks()
        return {name: table.column(name).combine_chunks() for name in names}
    except pa.ArrowException as error:  # files of one episode with different types
        raise unreadable(paths[0], error) from None


def _parquet_batches(pa: Any, path: Path, file: Any, names: list[str]) -> Iterable[Any]:
    with pa.parquet.ParquetFile(file) as table:
        _check_names(path, table.schema_arrow.names, names)
        rows: int = table.metadata.num_rows
        check_size(path, dict.fromkeys(names, rows * _NUMBER_BYTES))
        yield from table.iter_batches(columns=names)


@contextlib.contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A Parquet file for reading; damage found on opening or later is the user's to hear.

    Texts are read as numbers of texts: one that is long and in every row is in memory once.
    """
    pa = import_pyarrow(path)
    check_input(path)
    try:
        # A plain file handle: pyarrow would otherwise also take URLs and partitioned folders.
        with path.open("rb") as file, pa.parquet.ParquetFile(file) as table:
            texts = [column.name for column in table.schema_arrow if _is_text(column.type)]
        with path.open("rb") as file, pa.parquet.ParquetFile(file, read_dictionary=texts) as table:
            yield table
    except UserError:
        raise
    except Exception as error:  # Arrow's, and those of the many layers below it
        raise unreadable(path, error) from None


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_binary(kind)


def check_declared(path: Path, table: Any, names: Sequence[str]) -> None:
    """Refuse columns that, by what a Parquet file says of them, it cannot hold or the memory not take."""
    about = table.metadata
    least: int = about.num_rows * _NUMBER_BYTES
    said = dict.fromkeys(names, least)
    places = [i for i in range(about.num_columns) if about.schema.column(i).path in said]
    for part in (about.row_group(g).column(i) for g in range(about.num_row_groups) for i in places):
        said[part.path_in_schema] += part.total_uncompressed_size
    check_size(path, said)


def numpy_of(column: Any) -> np.ndarray:
    """A column's values; texts are objects, of which equal ones are the same."""
    import pyarrow.types as kinds

    if not kinds.is_dictionary(column.type):
        return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    parts = []
    for chunk in getattr(column, "chunks", [column]):
        chunk.validate(full=True)
        known = chunk.dictionary.to_numpy(zero_copy_only=False)
        if chunk.null_count:
            known = np.concatenate([known.astype(object), np.array([None], object)])
        parts.append(known[chunk.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)])
    return np.concatenate(parts) if parts else np.zeros(0, object)


def first_rows(path: Path, rows: int) -> tuple[list[str], Callable[[], list[np.ndarray]]]:
    """Names of all columns of a Parquet file, and what reads their first rows."""
    with open_parquet(path) as table:
        names: list[str] = list(table.schema_arrow.names)

    def read() -> list[np.ndarray]:
        with open_parquet(path) as table:
            check_declared(path, table, names)
            batch = next(table.iter_batches(batch_size=rows), None)
            return [np.zeros(0)] * len(names) if batch is None else [numpy_of(one) for one in batch.columns]

    return names, read


def _arrow_batches(pa: Any, path: Path, file: Any, names: list[str]) -> Iterable[Any]:
    with pa.ipc.open_file(file) as table:
        found = list(table.schema.names)
    _check_names(path, found, names)
    options = pa.ipc.IpcReadOptions(included_fields=[found.index(name) for name in names])
    with pa.ipc.open_file(file, options=options) as table:
        for number in range(table.num_record_batches):
            yield table.get_batch(number)


def _check_names(path: Path, found: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if found.count(name) != 1:
            what = "is there twice" if name in found else "is missing"
            raise DataError(str(path), [Fault(name, what)])


def rows_of(column: Any, path: Sequence[str | int], place: str) -> np.ndarray:
    """A column's numbers, one row of them for each row; `path` leads to one part of nested columns."""
    import pyarrow.types as kinds

    def refuse(why: str) -> DataError:
        return DataError("the dataset", [Fault(place, why)])

    for key in path:
        known = [field.name for field in column.type] if kinds.is_struct(column.type) else []
        if known.count(str(key)) != 1 or column.null_count:
            raise refuse(f"has no part '{one_line(str(key))}'")
        column = column.field(str(key))
    rows = len(column)
    if column.null_count:
        raise refuse("has empty cells")
    if kinds.is_fixed_size_list(column.type) or kinds.is_list(column.type):
        if kinds.is_list(column.type) and len(set(column.value_lengths().to_pylist())) > 1:
            raise refuse("has rows of different lengths")
        column = column.flatten()
        if column.null_count:
            raise refuse("has empty cells")
    kind = column.type
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        raise refuse(f"is not numeric ({one_line(str(kind))})")
    if rows == 0 or len(column) % rows:
        raise refuse(f"has {len(column):,} numbers in {rows:,} rows")
    return column.to_numpy(zero_copy_only=False).reshape(rows, -1)

"""Tables as data: CSV, Parquet and data frames, with one column per number.

Columns: `obs_0`, `obs_1`, …, then where the log has them `action_0`, …, `reward`, `terminated`,
`truncated`, `next_obs_0`, …, and `episode` (any label, equal within an episode). Rows are in the
order of time within each episode.
"""

from __future__ import annotations

import contextlib
import csv
import math
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from mcetm.console import one_line
from mcetm.data.arrow import import_pyarrow
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions, build
from mcetm.errors import UserError
from mcetm.files import check_input
from mcetm.formats import check_size, delimiter_of, unreadable

_WIDE = re.compile(r"(obs|action|next_obs)_([0-9]{1,6})")
_SCALARS = ("reward", "terminated", "truncated", "episode")
_NUMBER_BYTES = 8
_TRUTH = {"true": 1.0, "false": 0.0}


def from_dataframe(frame: Any, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a pandas or Polars data frame (or anything with `columns` and `to_numpy`)."""
    if not hasattr(frame, "columns"):
        raise UserError(
            f"A data frame is needed, with columns obs_0, obs_1, …, not a {type(frame).__name__}."
        )
    names = [str(name) for name in frame.columns]
    return _from_columns(
        names, lambda i: frame[frame.columns[i]].to_numpy(), source="the data frame", **options
    )


def read_parquet(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a Parquet file; needs `pip install "mcetm[parquet]"`."""
    path = Path(path)
    pyarrow = import_pyarrow(path)
    check_input(path)
    try:
        # A plain file handle: pyarrow would otherwise also take URLs and partitioned folders.
        with path.open("rb") as file, pyarrow.parquet.ParquetFile(file) as table:
            names = list(table.schema_arrow.names)
            used = [name for name in dict.fromkeys(names) if _is_used(name)]
            rows: int = table.metadata.num_rows
            check_size(path, dict.fromkeys(used, rows * _NUMBER_BYTES))
            # Columns that nobody needs are not read, and one of a name that is there twice is refused below.
            columns = {
                name: table.read([name]).column(0).to_numpy() for name in used if names.count(name) == 1
            }
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        raise unreadable(path, error) from None
    return _from_columns(names, lambda i: columns[names[i]], str(path), **options)


def read_csv(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a CSV (or tab-separated `.tsv`) file with a header row."""
    path = Path(path)
    check_input(path)
    delimiter = delimiter_of(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter)
            header = next(reader, [])
            skip = reader.line_num  # a quoted name can take several lines
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a table of text in UTF-8: {error}.") from None
    header = [name.strip() for name in header]
    used = [i for i, name in enumerate(header) if _is_used(name)]
    if not used:
        found = ", ".join(repr(name[:20]) for name in header[:4])
        message = f"no column has a known name (obs_0, …, action_0, …, reward, …); it begins with {found}"
        raise DataError(str(path), [Fault("header", message)])
    if not _is_even(path, delimiter, len(header)):
        raise DataError(str(path), _cell_faults(path, delimiter, used, header))
    label = header.index("episode") if "episode" in header else None
    numeric = [i for i in used if i != label]
    columns: dict[int, np.ndarray] = dict(
        zip(numeric, _load(path, delimiter, skip, numeric, header).T, strict=True)
    )
    if label is not None:
        try:
            columns[label] = _loadtxt(path, delimiter, skip, [label], dtype=str)[:, 0]
        except ValueError:
            raise DataError(str(path), _cell_faults(path, delimiter, numeric, header)) from None
    return _from_columns(header, lambda i: columns[i], str(path), **options)


def _is_used(name: str) -> bool:
    return name in _SCALARS or _WIDE.fullmatch(name) is not None


def _is_even(path: Path, delimiter: str, width: int) -> bool:
    """Whether every row has as many cells as the header; NumPy would leave out those at the end unasked."""
    separator = delimiter.encode()
    with path.open("rb") as file:
        for line in file:
            # Quotes can hide separators, and a lone carriage return is a line's end too.
            if b'"' in line or b"\r" in line.rstrip(b"\r\n"):
                break
            if line.count(separator) + 1 != width and line.strip(b"\r\n"):
                return False
        else:
            return True
    with (
        path.open(newline="", encoding="utf-8-sig", errors="replace") as file,
        contextlib.suppress(csv.Error),
    ):
        return all(len(cells) == width for cells in csv.reader(file, delimiter=delimiter) if cells)
    return False


def _load(path: Path, delimiter: str, skip: int, columns: list[int], header: list[str]) -> np.ndarray:
    """The numeric columns; NumPy's parser first, and only if that fails a search for what is wrong."""
    flags: dict[int | str, Callable[[str], float]] = {
        i: _to_number for i in columns if header[i] in ("terminated", "truncated")
    }
    try:
        return _loadtxt(path, delimiter, skip, columns, converters=flags or None)
    except ValueError:
        raise DataError(str(path), _cell_faults(path, delimiter, columns, header)) from None


def _loadtxt(path: Path, delimiter: str, skip: int, columns: list[int], **options: Any) -> np.ndarray:
    """NumPy's parser below the header; cells may be quoted, and nothing in them starts a comment."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*input contained no data.*")
        table = np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=skip,
            usecols=columns,
            ndmin=2,
            quotechar='"',
            comments=None,
            encoding="utf-8-sig",
            **options,
        )
    return table.reshape(-1, len(columns))


def _to_number(cell: str) -> float:
    """A flag's cell: 0/1, or True/False as pandas writes them."""
    text = cell.strip().lower()
    return _TRUTH[text] if text in _TRUTH else float(text)


def _plain_float(cell: str) -> float:
    """A number as NumPy's parser knows it: Python itself also takes `1_000` and digits of any script."""
    if not cell.isascii() or "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _cell_faults(path: Path, delimiter: str, columns: list[int], header: list[str]) -> list[Fault]:
    """The first bad cell of each column, and the first row that is too short or too long."""
    faults: dict[str, Fault] = {}
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file, delimiter=delimiter)
        next(lines)
        try:
            for row, cells in enumerate(filter(None, lines)):
                if len(cells) != len(header):
                    message = f"has {len(cells)} cells, but the header has {len(header)}"
                    faults.setdefault("table", Fault("table", message, row))
                    continue
                for i in columns:
                    if header[i] == "episode":  # any label will do
                        continue
                    parse = _to_number if header[i] in ("terminated", "truncated") else _plain_float
                    try:
                        what = "" if math.isfinite(parse(cells[i])) else f"is {cells[i].strip()}"
                    except ValueError:
                        what = f"is not numeric, {cells[i][:40]!r}" if cells[i].strip() else "is empty"
                    if what:
                        faults.setdefault(header[i], Fault(header[i], what, row))
        except csv.Error as error:
            faults["table"] = Fault("table", f"is not readable as CSV, {error}", lines.line_num - 1)
    return list(faults.values()) or [Fault("table", "is not readable as CSV")]


def _from_columns(
    names: Sequence[str],
    column: Callable[[int], np.ndarray],
    source: str,
    **options: Unpack[ReadOptions],
) -> Transitions:
    """Gather columns into fields by their names."""
    faults: list[Fault] = []
    wide: dict[str, dict[int, int]] = {}
    fields: dict[str, Any] = {}
    ignored: list[str] = []
    first: dict[str, int] = {}
    for position, name in enumerate(names):
        if first.setdefault(name, position) != position:
            faults.append(Fault(one_line(name) or "''", "appears twice in the header"))
        elif (match := _WIDE.fullmatch(name)) and match[2] != str(int(match[2])):
            faults.append(Fault(name, f"must be written {match[1]}_{int(match[2])}"))
        elif match:
            wide.setdefault(match[1], {})[int(match[2])] = position
        elif name in _SCALARS:
            fields[name] = np.array(column(position))  # a copy: the frame may change later
        else:
            ignored.append(name)
    for field, positions in wide.items():
        gaps = [i for i in range(len(positions)) if i not in positions]
        if gaps:
            faults.append(
                Fault(f"{field}_{gaps[0]}", f"is missing, though there is {field}_{max(positions)}")
            )
            continue
        columns = [column(positions[i]) for i in range(len(positions))]
        numeric = [_is_numeric(f"{field}_{i}", values, faults) for i, values in enumerate(columns)]
        if all(numeric):
            fields[field] = np.stack(columns, axis=1)
    if "obs" not in wide:
        faults.append(Fault("obs_0", "is missing"))
    if faults:
        raise DataError(source, faults)

    notes = (f"columns not used: {_listed(ignored)}",) if ignored else ()
    return build(fields, Metadata(source=source, notes=notes), **options)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name) or "''" for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _is_numeric(name: str, values: np.ndarray, faults: list[Fault]) -> bool:
    if values.dtype.kind in "biuf":
        return True
    for row, value in enumerate(values):
        if not isinstance(value, int | float | np.number):
            faults.append(Fault(name, f"is not numeric, {str(value)[:40]!r}", row))
            return False
    faults.append(Fault(name, f"is not numeric ({values.dtype})"))
    return False

"""Tables as data: CSV, Parquet and data frames, with one column per number.

Columns: `obs_0`, `obs_1`, …, then where the log has them `action_0`, …, `reward`, `terminated`,
`truncated`, `next_obs_0`, …, and `episode` (any label, equal within an episode). Rows are in the
order of time within each episode.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions, build
from mcetm.errors import UserError
from mcetm.formats import delimiter_of

_WIDE = re.compile(r"(obs|action|next_obs)_(\d+)")
_SCALARS = ("reward", "terminated", "truncated", "episode")
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
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError(f'Reading {path} needs pyarrow: pip install "mcetm[parquet]".') from None
    try:
        # A plain file handle: pyarrow would otherwise also take URLs and partitioned folders.
        with Path(path).open("rb") as file:
            table = pyarrow.parquet.read_table(file)
        names = list(table.column_names)
        columns = [column.to_numpy() for column in table.columns]
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is truncated or corrupt: {' '.join(str(error).split())}.") from None
    return _from_columns(names, lambda i: columns[i], str(path), **options)


def read_csv(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a CSV (or tab-separated `.tsv`) file with a header row."""
    path = Path(path)
    delimiter = delimiter_of(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file, delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a table of text in UTF-8: {error}.") from None
    header = [name.strip() for name in header]
    used = [i for i, name in enumerate(header) if name in _SCALARS or _WIDE.fullmatch(name)]
    if not used:
        found = ", ".join(repr(name[:20]) for name in header[:4])
        message = f"no column has a known name (obs_0, …, action_0, …, reward, …); it begins with {found}"
        raise DataError(str(path), [Fault("header", message)])
    label = header.index("episode") if "episode" in header else None
    numeric = [i for i in used if i != label]
    columns: dict[int, np.ndarray] = dict(
        zip(numeric, _load(path, delimiter, numeric, header).T, strict=True)
    )
    if label is not None:
        try:
            columns[label] = _loadtxt(path, delimiter, [label], dtype=str)[:, 0]
        except ValueError:
            raise DataError(str(path), _cell_faults(path, delimiter, numeric, header)) from None
    return _from_columns(header, lambda i: columns[i], str(path), **options)


def _load(path: Path, delimiter: str, columns: list[int], header: list[str]) -> np.ndarray:
    """The numeric columns; NumPy's parser first, and only if that fails a search for what is wrong."""
    flags: dict[int | str, Callable[[str], float]] = {
        i: _to_number for i in columns if header[i] in ("terminated", "truncated")
    }
    try:
        return _loadtxt(path, delimiter, columns, converters=flags or None)
    except ValueError:
        raise DataError(str(path), _cell_faults(path, delimiter, columns, header)) from None


def _loadtxt(path: Path, delimiter: str, columns: list[int], **options: Any) -> np.ndarray:
    """NumPy's parser; cells may be quoted, and nothing in them starts a comment."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*input contained no data.*")
        table = np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=1,
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


def _cell_faults(path: Path, delimiter: str, columns: list[int], header: list[str]) -> list[Fault]:
    """The first bad cell of each column, and the first row that is too short."""
    faults: dict[str, Fault] = {}
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file, delimiter=delimiter)
        next(lines)
        try:
            for row, cells in enumerate(filter(None, lines)):
                if len(cells) < len(header):
                    message = f"has {len(cells)} cells, but the header has {len(header)}"
                    faults.setdefault("table", Fault("table", message, row))
                    continue
                for i in columns:
                    parse = _to_number if header[i] in ("terminated", "truncated") else float
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
    for position, name in enumerate(names):
        if names.index(name) != position:
            faults.append(Fault(name, "appears twice in the header"))
        elif match := _WIDE.fullmatch(name):
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

    notes = (f"columns not used: {', '.join(ignored)}",) if ignored else ()
    return build(fields, Metadata(source=source, notes=notes), **options)


def _is_numeric(name: str, values: np.ndarray, faults: list[Fault]) -> bool:
    if values.dtype.kind in "biuf":
        return True
    for row, value in enumerate(values):
        if not isinstance(value, int | float | np.number):
            faults.append(Fault(name, f"is not numeric, {str(value)[:40]!r}", row))
            return False
    faults.append(Fault(name, f"is not numeric ({values.dtype})"))
    return False

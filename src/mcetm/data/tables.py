"""Tables as data: CSV, Parquet and data frames, with one column per number.

Columns have the names that their maker gave them, and `Columns` says which is what; else they are called
`obs_0`, `obs_1`, …, `action_0`, …, `reward`, `terminated`, `truncated`, `next_obs_0`, …, and `episode` (any
label, equal within an episode). Rows are in the order of time within each episode, or a column says when.
"""

from __future__ import annotations

import contextlib
import csv
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from mcetm.console import one_line
from mcetm.data import cells as read
from mcetm.data.arrow import check_declared, numpy_of, open_parquet
from mcetm.data.columns import ColumnPlan, Columns, columns_beside, columns_of, file_beside, plan_of
from mcetm.data.dialect import Decimal, Dialect, decimal_of, number, recognise, with_decimal
from mcetm.data.faults import DataError, Fault
from mcetm.data.times import TimeError, arrange, seconds_of
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import ReadOptions, build, labels_of
from mcetm.errors import UserError
from mcetm.files import check_input

_FIRST = 1000
"""Rows that usually tell the decimal sign."""
_CHUNK = 50_000
"""Rows of text that are in memory at once."""


def from_dataframe(frame: Any, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a pandas or Polars data frame (or anything with `columns` and `to_numpy`)."""
    kind, source = type(frame).__name__, "the data frame"
    if kind == "LazyFrame":
        raise UserError("A lazy frame has no rows yet; give what its collect() returns.")
    if not hasattr(frame, "columns"):
        raise UserError(f"A data frame is needed, with columns obs_0, obs_1, …, not a {kind}.")
    if any(name is not None for name in getattr(getattr(frame, "index", None), "names", ())):
        with contextlib.suppress(ValueError):  # of a name that a column has too
            frame = frame.reset_index()  # pandas often keeps the time there
    names = [str(name) for name in frame.columns]
    plan = plan_of(names, columns_of(options.get("columns")), source)
    column = lambda i: np.array(frame[frame.columns[i]].to_numpy())  # a copy: the frame may change  # noqa: E731
    return from_columns(names, column, plan, source, **options)


def read_parquet(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a Parquet file; needs `pip install "mcetm[parquet]"`."""
    path = Path(path)
    with open_parquet(path) as table:
        columns, notes = columns_for(path, options)
        names = list(table.schema_arrow.names)
        plan = plan_of(names, columns, str(path))
        used = [names[i] for i in {*plan.numbers, *plan.texts.values()}]
        check_declared(path, table, used)
        # Columns that nobody needs are not read.
        found = {name: numpy_of(table.read([name]).column(0)) for name in used}
    return from_columns(names, lambda i: found[names[i]], plan, str(path), notes, **options)


def read_csv(path: str | Path, **options: Unpack[ReadOptions]) -> Transitions:
    """Transitions from a text table with a header row; how it is written is recognised."""
    path = Path(path)
    check_input(path)
    columns, notes = columns_for(path, options)
    dialect = recognise(path)
    names = list(dialect.header)
    plan = plan_of(names, columns, str(path))
    if not _is_even(path, dialect):
        raise DataError(str(path), _row_faults(path, dialect))
    chosen = None if columns is None else columns.decimal
    dialect = with_decimal(dialect, chosen or _first_decimal(path, dialect, plan))
    found = _loaded(path, dialect, plan)
    if found is None:
        dialect, found = _converted(path, dialect, plan, chosen=chosen is not None)
    said = (*notes, dialect.said) if dialect.said else notes
    return from_columns(names, lambda i: found[i], plan, str(path), said, **options)


def columns_for(path: Path, options: ReadOptions) -> tuple[Columns | None, tuple[str, ...]]:
    """What was given, else what a file beside the table says."""
    given = columns_of(options.get("columns"))
    if given is not None:
        return given, ()
    beside = columns_beside(path)
    return beside, () if beside is None else (f"columns are as {file_beside(path).name} says",)


def _is_even(path: Path, dialect: Dialect) -> bool:
    """Whether every row has as many cells as the header; NumPy would leave out those at the end unasked."""
    separator, width = dialect.delimiter.encode(), len(dialect.header)
    if dialect.encoding != "utf-16":
        with path.open("rb") as file:
            for line in islice(file, dialect.skip, None):
                # Quotes can hide separators, and a lone carriage return is a line's end too.
                if b'"' in line or b"\r" in line.rstrip(b"\r\n"):
                    break
                if line.count(separator) + 1 != width and line.strip(b"\r\n"):
                    return False
            else:
                return True
    with (
        path.open(newline="", encoding=dialect.encoding, errors="replace") as file,
        contextlib.suppress(csv.Error),
    ):
        return all(len(cells) == width for cells in dialect.rows(file))
    return False


def _row_faults(path: Path, dialect: Dialect) -> list[Fault]:
    """The first row that is too short or too long."""
    width = len(dialect.header)
    with path.open(newline="", encoding=dialect.encoding, errors="replace") as file:
        try:
            for row, cells in enumerate(dialect.rows(file)):
                if len(cells) != width:
                    message = f"has {len(cells)} cells, but the header has {width}"
                    if dialect.delimiter == "," and len(cells) > width + 1:
                        message += "; numbers with decimal commas need another separator, such as semicolons"
                    return [Fault("table", message, row)]
        except csv.Error as error:
            return [Fault("table", f"is not readable as CSV, {error}")]
    return [Fault("table", "is not readable as CSV")]


def _loaded(path: Path, dialect: Dialect, plan: ColumnPlan) -> dict[int, np.ndarray] | None:
    """The columns by NumPy's fast parser; None where anything in them is not as plain as it knows it."""
    flag = read.truth_or(float)
    converters: Any = dict.fromkeys(plan.flags, flag) or None
    try:
        table = _loadtxt(path, dialect, plan.numbers, converters=converters, numeric=True)
        found = dict(zip(plan.numbers, table.T, strict=True))
        for place in plan.texts.values():
            found.setdefault(place, _loadtxt(path, dialect, [place], dtype=str)[:, 0])
    except ValueError:
        return None
    return found


def _first_decimal(path: Path, dialect: Dialect, plan: ColumnPlan) -> Decimal:
    """The decimal sign, as far as the first rows tell."""
    first = next(_chunks(path, dialect, rows=_FIRST), None)
    numeric = [place for place in plan.numbers if place not in plan.flags]
    return "." if first is None else decimal_of(cell for place in numeric for cell in first[place])[0]


def _loadtxt(
    path: Path, dialect: Dialect, columns: Sequence[int], *, numeric: bool = False, **options: Any
) -> np.ndarray:
    """NumPy's parser below the header; cells may be quoted, and nothing in them starts a comment."""
    # NumPy knows decimal points only. A point in such a file groups thousands: then it has to give up.
    points = str.maketrans({",": ".", ".": "\1"}) if numeric and dialect.decimal == "," else {}
    with warnings.catch_warnings(), path.open(newline="", encoding=dialect.encoding) as file:
        warnings.filterwarnings("ignore", message="(?is).*input.*contained no data.*")
        table = np.loadtxt(
            (line.translate(points) for line in file) if points else file,
            delimiter=dialect.delimiter,
            skiprows=dialect.body,
            usecols=columns,
            ndmin=2,
            quotechar='"',
            comments=None,
            **options,
        )
    return table.reshape(-1, len(columns))


def _converted(
    path: Path, dialect: Dialect, plan: ColumnPlan, *, chosen: bool
) -> tuple[Dialect, dict[int, np.ndarray]]:
    """The columns cell by cell: other decimals, grouped thousands, empty cells; else what is wrong."""
    numeric = [place for place in plan.numbers if place not in plan.flags]
    if not chosen:
        decimal, unclear = decimal_of(
            cell for chunk in _chunks(path, dialect) for place in numeric for cell in chunk[place]
        )
        if unclear is not None:
            message = f"may be a thousand or a fraction, {unclear!r}; say what separates decimals (decimal)"
            raise DataError(str(path), [Fault("table", message)])
        dialect = with_decimal(dialect, decimal)
    parts: dict[int, list[np.ndarray]] = {place: [] for place in {*plan.numbers, *plan.texts.values()}}
    faults: dict[int, Fault] = {}
    rows = 0
    plain: Callable[[str], float] = lambda cell: number(cell, dialect.decimal)  # noqa: E731
    for chunk in _chunks(path, dialect):
        for place in set(plan.texts.values()) - set(plan.numbers):
            parts[place].append(np.array([cell.strip() for cell in chunk[place]], str))
        for place in plan.numbers:
            parse = read.truth_or(plain) if place in plan.flags else plain
            name, empty = dialect.header[place], place in plan.may_be_empty
            values, fault = read.parsed(name, chunk[place], parse, empty=empty, first=rows)
            parts[place].append(values)
            if fault is not None:
                faults.setdefault(place, fault)
        rows += len(next(iter(chunk), []))
    if faults:
        found = sorted(faults.values(), key=lambda fault: fault.row or 0)
        if len(faults) == len(plan.numbers) > 1 and all(fault.row == 0 for fault in found) and rows > 1:
            found = [Fault("table", "is not data (units, perhaps); delete the line", 0), *found]
        raise DataError(str(path), found)
    return dialect, {place: np.concatenate(found or [np.zeros(0)]) for place, found in parts.items()}


def _chunks(path: Path, dialect: Dialect, rows: int = _CHUNK) -> Iterator[list[list[str]]]:
    """Some rows at a time, as columns of text."""
    try:
        with path.open(newline="", encoding=dialect.encoding) as file:
            lines = dialect.rows(file)
            while chunk := list(islice(lines, rows)):
                yield [list(column) for column in zip(*chunk, strict=True)]
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise UserError(f"{path} is not a table of text in UTF-8: {error}.") from None


def from_columns(
    names: Sequence[str],
    column: Callable[[int], np.ndarray],
    plan: ColumnPlan,
    source: str,
    notes: Sequence[str] = (),
    *,
    ends_are_marked: bool = False,
    **options: Unpack[ReadOptions],
) -> Transitions:
    """Gather columns into fields as planned, in the order of time."""
    faults: list[Fault] = []
    may = plan.may_be_empty
    ready = {i: read.numbers(one_line(names[i]), column(i), faults, empty=i in may) for i in plan.numbers}
    if faults:
        raise DataError(source, faults)
    arrays = {i: values for i, values in ready.items() if values is not None}
    fields: dict[str, Any] = {
        field: np.stack([arrays[i] for i in places], axis=1)
        if field in ("obs", "action", "next_obs")
        else arrays[places[0]]
        for field, places in plan.fields.items()
    }
    if plan.negative:
        fields["reward"] = -fields["reward"].astype(np.float64)
    labels = labels_of(column(plan.texts["episode"])) if "episode" in plan.texts else None
    options.pop("columns", None)
    notes = (*plan.notes, *notes)
    if "time" in plan.texts:
        fields, labels, said = _in_time(names[plan.texts["time"]], column, plan, fields, labels, source)
        notes = (*notes, *said)
    if labels is not None:
        fields["episode"] = labels
    metadata = Metadata(source=source, notes=tuple(notes), **plan.about)
    return build(fields, metadata, ends_are_marked=ends_are_marked, **options)


def _in_time(
    name: str,
    column: Callable[[int], np.ndarray],
    plan: ColumnPlan,
    fields: Mapping[str, np.ndarray],
    labels: np.ndarray | None,
    source: str,
) -> tuple[dict[str, Any], np.ndarray | None, tuple[str, ...]]:
    """The fields in the order of time, and what was found about it."""
    name = one_line(name)
    try:
        values = column(plan.texts["time"])
        times, unit = seconds_of(name, values)
        ends = np.zeros(len(times), bool)
        for flag in ("terminated", "truncated"):
            ends |= np.asarray(fields.get(flag, ends)) == 1
        found = arrange(name, times, labels, ends, plan.split_gaps, unit)
    except TimeError as refused:
        raise DataError(source, [refused.fault]) from None
    if found.order is None:
        return dict(fields), found.labels, found.notes
    return {field: values[found.order] for field, values in fields.items()}, found.labels, found.notes

"""From loose arrays to `Transitions`: every fault is found in one pass and named by field and row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from mcetm.arguments import whole
from mcetm.console import one_line
from mcetm.data.columns import Columns, columns_of
from mcetm.data.faults import DataError, Fault
from mcetm.data.infer import complete
from mcetm.data.names import MOST_LETTERS, are_names
from mcetm.data.transitions import Metadata, Transitions
from mcetm.errors import UserError
from mcetm.tasks.registry import get_task

MIN_TRANSITIONS = 10
"""Fewer rows than this are refused by default: nothing can be estimated from them."""

_NO_LABEL = ""
_FLAGS = ("terminated", "truncated")
_SCALARS = ("reward", *_FLAGS)
_LARGEST = float(np.finfo(np.float32).max)
_BOUND_TOLERANCE = 1e-5
"""Share of the action range by which rounding may carry an action over its bound."""


class ReadOptions(TypedDict, total=False):
    """What every reader takes besides its source."""

    task: str | None
    """Name of a registered task: gives action bounds, time limit and scores."""
    time_limit: int | None
    """Steps after which episodes were cut, for logs that do not say where."""
    min_transitions: int | None
    """Refuse fewer usable rows than this."""
    columns: Columns | Mapping[str, Any] | None
    """Which columns of a table are what (`mcetm.Columns`); of other logs, their action bounds."""


def build(
    fields: Mapping[str, Any],
    metadata: Metadata,
    *,
    infos: Mapping[str, Any] | None = None,
    ends_are_marked: bool = False,
    **options: Unpack[ReadOptions],
) -> Transitions:
    """Validate raw fields and build transitions.

    `fields` holds `obs` and, where the log has them, `action`, `reward`, `next_obs`,
    `terminated`, `truncated` and `episode` (any labels, equal within an episode). What is
    missing is treated as follows, each recorded in the metadata:

    - no action: actions of no width; no reward: zeros, and `absent` says so;
    - no next_obs, or not-a-number throughout: the following row's obs, inside an episode. At an
      episode's end it is unknown: a terminated row is kept, as nothing that follows counts; a
      truncated one is dropped;
    - no truncated: episodes are cut where `episode` changes, where next_obs does not continue
      in the following row, or else every `time_limit` rows; `ends_are_marked` says that no end is
      missing, whatever the rows look like.

    A task, from the options or the metadata, completes action bounds and time limit.
    """
    faults: list[Fault] = []
    if (limit := options.get("time_limit")) is not None:
        whole("time_limit", limit, least=1)
    minimum = options.get("min_transitions")
    minimum = MIN_TRANSITIONS if minimum is None else whole("min_transitions", minimum)
    metadata = _with_bounds(fields, metadata, options.get("columns"))
    task_name = options.get("task") or metadata.task
    task = None if task_name is None else get_task(task_name)
    if task is not None:
        metadata = replace(
            metadata,
            task=task.name,
            action_low=metadata.action_low or task.action_low,
            action_high=metadata.action_high or task.action_high,
        )
    time_limit = options.get("time_limit") or (None if task is None else task.time_limit)
    present = {name: value for name, value in fields.items() if value is not None}
    if "obs" not in present:
        raise DataError(metadata.source, [Fault("obs", "is missing")])

    arrays: dict[str, np.ndarray] = {}
    for name, value in present.items():
        array = labels_of(value) if name == "episode" else _numeric_array(name, value, metadata, faults)
        if array is not None:
            arrays[name] = array

    rows = len(arrays["obs"]) if "obs" in arrays else None
    for name, array in arrays.items():
        if rows is not None and len(array) != rows:
            faults.append(Fault(name, f"has {len(array)} rows, but obs has {rows}"))
    if "next_obs" in arrays and "obs" in arrays and arrays["next_obs"].shape[1] != arrays["obs"].shape[1]:
        widths = arrays["next_obs"].shape[1], arrays["obs"].shape[1]
        faults.append(Fault("next_obs", f"has {widths[0]} columns, but obs has {widths[1]}"))
    if task is not None and "obs" in arrays and arrays["obs"].shape[1] != task.obs_dim:
        message = (
            f"has {arrays['obs'].shape[1]} columns, but task '{task.name}' has {task.obs_dim} observations"
        )
        faults.append(Fault("obs", message))
    infos = {name: np.asarray(value) for name, value in (infos or {}).items()}
    for name, value in infos.items():
        if rows is not None and value.shape[:1] != (rows,):
            faults.append(Fault(f"infos/{name}", f"has the shape {value.shape}, but obs has {rows} rows"))
    if "episode" in arrays:
        faults.extend(_label_faults(arrays["episode"]))
    if "action" in arrays:
        faults.extend(_bound_faults(arrays["action"], metadata))
    faults.extend(_name_faults(arrays, metadata))
    if rows == 0:
        faults.append(Fault("obs", "has no rows"))
    if faults:
        raise DataError(metadata.source, faults)

    transitions = complete(arrays, metadata, infos, time_limit, ends_are_marked=ends_are_marked)
    if len(transitions) < (minimum := max(1, minimum)):
        raise DataError(
            metadata.source,
            [Fault("obs", f"only {len(transitions)} usable transitions, and at least {minimum} are needed")],
        )
    return transitions


def _with_bounds(
    fields: Mapping[str, Any], metadata: Metadata, given: Columns | Mapping[str, Any] | None
) -> Metadata:
    """The metadata with action bounds that were given; only tables have columns that can be named."""
    columns = columns_of(given)
    if columns is None:
        return metadata
    if columns.names_columns:
        raise UserError(
            f"{metadata.source} is no table with named columns, so only action bounds can be given for it."
        )
    action = fields.get("action")
    shape = () if action is None else np.shape(action)
    bounds = columns.bounds(shape[1] if len(shape) > 1 else 1)
    return metadata if bounds is None else replace(metadata, action_low=bounds[0], action_high=bounds[1])


def check_columns(log: Transitions) -> None:
    """Refuse names and bounds that do not fit a log's observations and actions."""
    faults = _name_faults({"obs": log.obs, "action": log.action}, log.metadata)
    if None not in (log.metadata.action_low, log.metadata.action_high):  # one may be said after the other
        faults += _bound_faults(log.action, log.metadata)
    if faults:
        raise DataError(log.metadata.source, faults)


def labels_of(value: Any) -> np.ndarray:
    """Labels that can be compared, whatever they are."""
    labels = np.asarray(value).reshape(-1)
    if labels.dtype.kind != "O":
        return labels
    # In a column of objects None and NaN both stand for a missing label; NaN alone differs from itself.
    # They stay objects: as an array of text, every row would be as long as the longest of them.
    return np.array([_NO_LABEL if x is None or x != x else str(x) for x in labels], object)


def _numeric_array(name: str, value: Any, metadata: Metadata, faults: list[Fault]) -> np.ndarray | None:
    """The field as float32 (or bool for flags) of the right rank, or None with the faults noted."""
    if np.ma.is_masked(value):
        row = int(np.argwhere(np.ma.getmaskarray(value))[0][0])
        faults.append(Fault(name, "is masked out", row))
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # ragged nested lists
        faults.append(Fault(name, "rows differ in length"))
        return None
    if array.dtype.kind not in "biuf":
        faults.append(_non_numeric_fault(name, array))
        return None
    if name in _SCALARS:
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        wanted, words = 1, "one number per row"
    else:
        array = array[:, None] if array.ndim == 1 else array
        wanted, words = 2, "one row of numbers each"
    if array.ndim != wanted:
        hint = "; images are not supported" if name in ("obs", "next_obs") and array.ndim > 3 else ""
        faults.append(Fault(name, f"must have {words}, but its shape is {array.shape}{hint}"))
        return None
    if wanted == 2 and name != "action" and array.shape[1] == 0:
        faults.append(Fault(name, "has no columns"))
        return None
    return _flags(name, array, faults) if name in _FLAGS else _singles(name, array, metadata, faults)


def _flags(name: str, array: np.ndarray, faults: list[Fault]) -> np.ndarray | None:
    """Truth values, which a file may also hold as numbers."""
    if array.dtype.kind != "b":
        wrong = np.flatnonzero((array != 0) & (array != 1))
        if len(wrong):
            message = f"must be 0 or 1, but is {array[wrong[0]]:g}{_more(len(wrong))}"
            faults.append(Fault(name, message, int(wrong[0])))
            return None
    return array.astype(bool)


def _singles(name: str, array: np.ndarray, metadata: Metadata, faults: list[Fault]) -> np.ndarray:
    """Finite numbers in single precision."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
        single = array.astype(np.float32, copy=False)
    finite = np.isfinite(single)
    if name == "next_obs":  # a row without any number says that it is unknown, which only an end may be
        finite |= np.isnan(single).all(axis=1, keepdims=True)
    if not finite.all():
        rows = np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))
        column = int(np.argmin(finite[rows[0]])) if array.ndim == 2 else None
        first = array[rows[0]] if column is None else array[rows[0], column]
        if np.isnan(first):
            what = "is NaN"
        else:
            what = "is infinite" if np.isinf(first) else f"is too large, {first:g}"
        called = None if column is None else metadata.name_of(name, column)
        which = "" if column is None else f"'{called}' " if called else f"component {column} "
        also = f" (and {len(rows) - 1:,} more rows are not finite)" if len(rows) > 1 else ""
        faults.append(Fault(name, f"{which}{what}{also}", int(rows[0])))
    return single


def _non_numeric_fault(name: str, array: np.ndarray) -> Fault:
    """Name the first entry that is not a number."""
    rows = len(array) if array.ndim else 1
    for row, entries in enumerate(array.reshape(rows, -1) if array.size else ()):
        for entry in entries:
            if not isinstance(entry, int | float | np.number | np.bool_) or isinstance(entry, complex):
                return Fault(name, f"is not numeric, {str(entry)[:40]!r}", row)
    return Fault(name, f"is not numeric ({array.dtype})")


def _name_faults(arrays: Mapping[str, np.ndarray], metadata: Metadata) -> list[Fault]:
    """Names that are no names, or not as many as there are numbers."""
    faults = []
    for field, names in (("obs", metadata.obs_names), ("action", metadata.action_names)):
        if not are_names(names):
            faults.append(
                Fault(f"{field}_names", f"need printable names of 1 to {MOST_LETTERS} letters, each once")
            )
        elif names is not None and (width := arrays[field].shape[1] if field in arrays else 0) != len(names):
            faults.append(Fault(f"{field}_names", f"has {len(names)} names, but {field} has {width} columns"))
    return faults


def _more(count: int) -> str:
    return f" (and {count - 1:,} more row{'s' if count > 2 else ''})" if count > 1 else ""


def _is_bound(value: Any) -> bool:
    """A number that single precision holds, or an infinite one."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return False
    return bool(abs(value) <= _LARGEST or abs(value) == float("inf"))


def _bound_faults(action: np.ndarray, metadata: Metadata) -> list[Fault]:
    if metadata.action_low is None and metadata.action_high is None:
        return []
    if metadata.action_low is None or metadata.action_high is None:
        return [Fault("action", "has a lower or an upper bound only; give both or none")]
    if len(metadata.action_low) != len(metadata.action_high):
        sizes = f"{len(metadata.action_low)} lower and {len(metadata.action_high)} upper"
        return [Fault("action", f"has {sizes} bounds")]
    if not all(_is_bound(bound) for bound in (*metadata.action_low, *metadata.action_high)):
        return [Fault("action", "has a bound that is no number in single precision")]
    if any(low > high for low, high in zip(metadata.action_low, metadata.action_high, strict=True)):
        return [Fault("action", "has a lower bound above its upper one")]
    low, high = np.array(metadata.action_low, np.float32), np.array(metadata.action_high, np.float32)
    if action.shape[1] != len(low):
        return [Fault("action", f"has {action.shape[1]} columns, but the action space has {len(low)}")]
    slack = _BOUND_TOLERANCE * (high - low)
    low, high = low - slack, high + slack
    # Two plain reductions settle the common case ten times faster than comparing column by column.
    if action.size == 0 or (action.min() >= low.max() and action.max() <= high.min()):
        return []
    # Not-a-number compares false on both sides: it is reported as such, not as out of bounds.
    outside = (action < low) | (action > high)
    if not outside.any():
        return []
    rows = np.flatnonzero(outside.any(axis=1))
    column = int(np.flatnonzero(outside[rows[0]])[0])
    which = f"'{called}'" if (called := metadata.name_of("action", column)) else f"component {column}"
    message = (
        f"{which} is {action[rows[0], column]:g}, outside its bounds "
        f"[{metadata.action_low[column]:g}, {metadata.action_high[column]:g}]{_more(len(rows))}"
    )
    return [Fault("action", message, int(rows[0]))]


def _label_faults(labels: np.ndarray) -> list[Fault]:
    """Rows without a label, and a label that returns after another one: its episode is scattered."""
    if not len(labels):
        return []
    texts = labels.dtype.kind in "UO"
    missing = np.flatnonzero(labels == _NO_LABEL if texts else labels != labels)
    if len(missing):
        return [Fault("episode", f"is empty{_more(len(missing))}", int(missing[0]))]
    firsts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
    seen, counts = np.unique(labels[firsts], return_counts=True)
    if not (counts > 1).any():
        return []
    label = seen[counts > 1][0]
    again = int(firsts[np.flatnonzero(labels[firsts] == label)[1]])
    message = f"episode {one_line(str(label))} starts again after another one; sort the rows by episode"
    return [Fault("episode", message, again)]

"""Read a file that memory may not hold: checked transitions, some whole episodes at a time, in order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from mcetm.data.arrow import import_pyarrow
from mcetm.data.columns import plan_of
from mcetm.data.d4rl import NAMES, header_of
from mcetm.data.faults import DataError, Fault
from mcetm.data.tables import columns_for, from_columns
from mcetm.data.transitions import Transitions
from mcetm.data.validate import ReadOptions, build
from mcetm.errors import UserError
from mcetm.files import check_input
from mcetm.formats import hdf5_datasets, kind_of, open_hdf5, unreadable

_ROWS = 500_000
"""Rows that are read together."""
_LEFT = 1000
"""Rows that wait for the next part: the end of an episode alone may have no row that can be used."""

Raw = Mapping[Hashable, np.ndarray]


@dataclass(frozen=True)
class Parts:
    """A file as a sequence of parts; each time it is asked for, the file is read anew."""

    raw: Callable[[], Iterator[Raw]]
    """Rows as they lie in the file, some at a time."""
    ends: Callable[[Raw], np.ndarray]
    """After which rows an episode ends."""
    made: Callable[[Raw], Transitions]
    """Transitions from rows of whole episodes."""

    def __iter__(self) -> Iterator[Transitions]:
        first, left = 0, {}
        for read in self.raw():
            left = {name: np.concatenate([left[name], read[name]]) for name in read} if left else dict(read)
            cuts = np.flatnonzero(self.ends(left)[:-_LEFT])
            if cuts.size:
                cut = int(cuts[-1]) + 1
                yield self._part({name: array[:cut] for name, array in left.items()}, first)
                first, left = first + cut, {name: array[cut:] for name, array in left.items()}
        yield self._part(left, first)

    def _part(self, rows: Raw, first: int) -> Transitions:
        try:
            return self.made(rows)
        except DataError as error:  # it knows the rows of this part only
            faults = [replace(fault, row=first + fault.row) if fault.row else fault for fault in error.faults]
            raise DataError(error.source, faults) from None


def parts_of(path: Path, **options: Unpack[ReadOptions]) -> Parts:
    """A file of HDF5 or Parquet in parts."""
    kind = kind_of(path)
    if kind not in ("hdf5", "parquet"):
        raise UserError(
            f"{path} can only be read whole, and in_memory=False reads HDF5 and Parquet: read it once with "
            "load_dataset(FILE).save('NAME.hdf5')."
        )
    options = {**options, "min_transitions": 1}
    return _hdf5_parts(path, **options) if kind == "hdf5" else _parquet_parts(path, **options)


def _hdf5_parts(path: Path, **options: Unpack[ReadOptions]) -> Parts:
    """A file in D4RL's layout."""
    with open_hdf5(path) as file:
        stored = header_of(file, path)
        items = hdf5_datasets(file, NAMES.values())
        fields = {field: name for field, name in NAMES.items() if items[name] is not None}
        if faults := [
            Fault(NAMES[field], "is missing") for field in ("obs", "action") if field not in fields
        ]:
            raise DataError(str(path), faults)
        rows = {field: items[name].shape[:1] for field, name in fields.items()}
        if len(set(rows.values())) > 1:
            raise DataError(str(path), [Fault("obs", f"fields differ in their rows: {rows}")])
        count = rows["obs"][0]
    if "truncated" not in fields:
        raise _unmarked(path, f"no field '{NAMES['truncated']}'")

    def raw() -> Iterator[Raw]:
        with open_hdf5(path) as file:
            found = hdf5_datasets(file, fields.values())
            for first in range(0, count, _ROWS):
                yield {field: found[name][first : first + _ROWS] for field, name in fields.items()}

    def made(rows: Raw) -> Transitions:
        present = {str(name): array for name, array in rows.items() if name not in stored.metadata.absent}
        return build(present, stored.metadata, ends_are_marked=True, **options)

    return Parts(raw, lambda rows: _flagged(rows.get("terminated"), rows["truncated"]), made)


def _parquet_parts(path: Path, **options: Unpack[ReadOptions]) -> Parts:
    """A table of Parquet, whose rows are in order."""
    pyarrow = import_pyarrow(path)
    check_input(path)
    columns, notes = columns_for(path, options)

    def opened(read: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        try:
            with path.open("rb") as file, pyarrow.parquet.ParquetFile(file) as table:
                yield from read(table)
        except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
            raise unreadable(path, error) from None

    names: list[str] = next(opened(lambda table: iter([list(table.schema_arrow.names)])))
    plan = plan_of(names, columns, str(path))
    if "time" in plan.texts:
        raise UserError(
            f"{path} is put in the order of time, for which it must be read whole (in_memory=True)."
        )
    episode, flags = (
        plan.texts.get("episode"),
        [plan.fields.get(name) for name in ("terminated", "truncated")],
    )
    if episode is None and not flags[1]:
        raise _unmarked(path, "no column 'truncated' or 'episode'")
    used = list(dict.fromkeys([*plan.numbers, *plan.texts.values()]))

    def raw() -> Iterator[Raw]:
        wanted = [names[i] for i in used]
        for batch in opened(lambda table: table.iter_batches(batch_size=_ROWS, columns=wanted)):
            yield {i: batch.column(names[i]).to_numpy(zero_copy_only=False) for i in used}

    def ends(rows: Raw) -> np.ndarray:
        if episode is not None:
            return np.append(rows[episode][1:] != rows[episode][:-1], False)
        return _flagged(*(rows[places[0]] for places in flags if places))

    def made(rows: Raw) -> Transitions:
        return from_columns(
            names, lambda i: rows[i], plan, str(path), notes, ends_are_marked=episode is None, **options
        )

    return Parts(raw, ends, made)


def _flagged(*flags: np.ndarray | None) -> np.ndarray:
    return np.any([np.asarray(flag).reshape(-1) != 0 for flag in flags if flag is not None], axis=0)


def _unmarked(path: Path, what: str) -> UserError:
    return UserError(
        f"{path} has {what} to say where episodes end, so it must be read whole (in_memory=True)."
    )

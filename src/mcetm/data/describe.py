"""A proposal of what a table's columns are, from their names and what is in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.console import one_line
from mcetm.data.arrow import first_rows
from mcetm.data.cells import no_number
from mcetm.data.columns import file_beside
from mcetm.data.dialect import decimal_of, number, recognise
from mcetm.errors import UserError
from mcetm.files import path_kind, write_text
from mcetm.formats import kind_of

_MOST_COLUMNS = 5000
_SAMPLE = 20_000
_HINTS: tuple[tuple[str, str], ...] = (
    (
        "episode",
        r"episode(_?(id|no|nr|number|index))?|batch(_?(id|no|nr))?|run(_?(id|no|nr))?|trial|traj(ectory)?"
        r"|session|lot|charge|campaign|rollout|ep",
    ),
    ("terminated", r"terminated|terminals?|is_?terminal|done|fail(ed|ure)?|trip(ped)?|crash(ed)?|overflow"),
    ("truncated", r"truncated|time_?outs?|cut|aborted|interrupted"),
    (
        "time",
        r"time(_?stamp)?|date(_?time)?|t|clock|seconds|zeit(stempel)?|datum|uhrzeit|step(_?(no|nr|index))?",
    ),
    ("reward", r"rewards?|score|profit|-?(costs?|loss|penalty)"),
)
_ACTIONS = re.compile(
    r"(^|_|\b)(actions?|act|u|a|ctrl|control|cmd|command(ed)?|pump|valve|actuator|heater|motor"
    r"|torque|voltage|throttle|steer(ing)?|brake|damper|fan|dose|dosing|stroke|duty)(_?\d+)?($|_|\b)"
)  # fmt: skip
_NEXT = (re.compile(r"^next_(.+)$"), re.compile(r"^(.+)_next$"))


@dataclass(frozen=True)
class Proposal:
    """What each column seems to be, and why some are left out."""

    fields: dict[str, Any]
    """As `Columns` takes them."""
    left_out: dict[str, str]
    """Columns that are not used, each with the reason."""
    open: tuple[str, ...]
    """What only a person can say."""

    def toml(self, source: str) -> str:
        """As a file that lies beside the table."""
        lines = [
            f"# What the columns of {one_line(source)} are, by names and contents: read it, and mend it.",
            *(f"# TO DO: {words}" for words in self.open),
            "",
            *(f"{name} = {_toml(value)}" for name, value in self.fields.items()),
        ]
        if self.left_out:
            lines += ["", "# Not used:"]
            lines += [f"#   {one_line(name)}: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Text, or a list of texts: TOML's are JSON's, but for one sign that only TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def describe(path: Path) -> Proposal:
    """Propose what the columns of a text table or a Parquet file are."""
    kind = kind_of(path)
    if kind not in ("csv", "parquet"):
        raise UserError(f"{path} is no table: only CSV and Parquet files have columns that can be described.")
    names, read = _text(path) if kind == "csv" else first_rows(path, _SAMPLE)
    if not names:
        raise UserError(f"{path} has no columns.")
    if len(names) > _MOST_COLUMNS:
        raise UserError(f"{path} has {len(names):,} columns; at most {_MOST_COLUMNS:,} are described.")
    return propose(names, read())


def write_description(path: Path, *, replace: bool = False) -> tuple[Path, Proposal]:
    """Write the proposal beside the table."""
    place, found = file_beside(path), describe(path)
    if path_kind(place) != "nothing" and not replace:
        raise UserError(f"{place} exists already; --force replaces it.")
    write_text(place, found.toml(path.name))
    return place, found


def _text(path: Path) -> tuple[list[str], Callable[[], list[np.ndarray]]]:
    dialect = recognise(path)
    names = list(dialect.header)
    with path.open(newline="", encoding=dialect.encoding, errors="replace") as file:
        rows = [row for row in islice(dialect.rows(file), _SAMPLE) if len(row) == len(names)]
    decimal = decimal_of(cell for row in rows for cell in row)[0]

    def column(cells: Sequence[str]) -> np.ndarray:
        try:
            return np.array([np.nan if not cell.strip() else number(cell, decimal) for cell in cells])
        except ValueError:
            return np.array(cells, object)

    return names, lambda: [column([row[i] for row in rows]) for i in range(len(names))]


def propose(names: Sequence[str], columns: Sequence[np.ndarray]) -> Proposal:
    """What the columns of these names and first rows seem to be."""
    fields: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    taken: set[str] = set()
    plain = {name: re.sub(r"[^a-z0-9äöüß-]+", "_", _words(name)).strip("_") for name in names}
    for name in names:
        if list(names).count(name) > 1 or not name:
            left_out[name] = "its name is there twice" if name else "it has no name"
            taken.add(name)
    contents = dict(zip(names, columns, strict=True))
    for field, pattern in _HINTS:
        for name in names:
            fits = name not in taken and re.fullmatch(pattern, plain[name]) is not None
            if field == "time" and not fits and name not in taken:
                fits = "is a date" in _why(contents[name])
            if not fits or not _suits(field, contents[name]):
                continue
            taken.add(name)
            costs = field == "reward" and re.search("cost|loss|penalty", plain[name]) and name[0] != "-"
            fields[field] = f"-{name}" if costs else name
            break
    rest = [name for name in names if name not in taken]
    for name in rest:
        if why := _why(contents[name]):
            left_out[name] = why
    rest = [name for name in rest if name not in left_out]
    later = {name: before for name in rest for before in [_before(name)] if before in rest}
    action = [name for name in rest if name not in later and _ACTIONS.search(plain[name])]
    obs = [name for name in rest if name not in later and name not in action]
    following = {before: name for name, before in later.items()}
    open_ = []
    head: dict[str, Any] = {"obs": obs}
    if following and all(name in following for name in obs):
        head["next_obs"] = [following[name] for name in obs]
    else:
        left_out |= dict.fromkeys(later, "not every observation has such a column")
    if action:
        head["action"] = action
    else:
        open_.append("say which columns a controller sets: action = [...]")
    if not obs:
        open_.append("say which columns are measured: obs = [...]")
    if "reward" not in fields:
        open_.append('say which column is to be as large as possible: reward = "..." ("-cost" for a cost)')
    if "episode" not in fields and "truncated" not in fields:
        open_.append('if the table holds several episodes, say what labels them: episode = "..."')
    if "terminated" not in fields:
        open_.append('if a failure can end an episode, say which column marks it: terminated = "..."')
    order = ("reward", "episode", "terminated", "truncated", "time")
    return Proposal(
        {**head, **{name: fields[name] for name in order if name in fields}}, left_out, tuple(open_)
    )


def _words(name: str) -> str:
    """A name in small letters, its words apart: `pumpSpeed` as `pump_speed`; a unit behind it goes."""
    name = re.sub(r"\s*[\[(].*[\])]\s*$", "", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _before(name: str) -> str | None:
    match = next((match for pattern in _NEXT if (match := pattern.match(name))), None)
    return match[1] if match else None


def _why(values: np.ndarray) -> str:
    """Why a column cannot be a number of an observation or an action; nothing where it can."""
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        if len(numbers) and np.isnan(numbers).all():
            return "it is empty"
        if len(numbers) > 1 and np.nanmin(numbers) == np.nanmax(numbers):
            return "it never changes (in the first rows)"
        return ""
    cells = [cell for cell in values if str(cell).strip()]
    if not cells:
        return "it is empty"
    bad = next((cell for cell in cells if not isinstance(cell, int | float) and not _number(cell)), cells[0])
    return no_number(bad, cells)


def _number(cell: Any) -> bool:
    try:
        float(str(cell).replace(",", "."))
    except ValueError:
        return False
    return True


def _suits(field: str, values: np.ndarray) -> bool:
    """Whether what is in a column can be such a field."""
    if field in ("terminated", "truncated"):
        words = {str(value).strip().lower() for value in values}
        return words <= {"0", "1", "0.0", "1.0", "true", "false"}
    if field == "reward":
        return values.dtype.kind in "biuf"
    if field == "time":
        return values.dtype.kind in "biufM" or "is a date" in _why(values)
    return True

"""Which columns of a table are what: named by whoever has the table, or by a file beside it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal

from pydantic import Field

from mcetm.arguments import require
from mcetm.console import one_line
from mcetm.data.faults import DataError, Fault
from mcetm.data.names import MOST_LETTERS
from mcetm.documents import FileError, read_toml
from mcetm.errors import UserError
from mcetm.files import path_kind
from mcetm.settings import Number, Rate, from_plain, settings, to_plain

ColumnName = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS)]
_WIDE = re.compile(r"(obs|action|next_obs)_([0-9]{1,6})")
FLAGS = ("terminated", "truncated")
_SUFFIX = ".mcetm.toml"
_MOST_FAULTS = 20
"""Unknown names for which the nearest known one is looked up."""
_ENDS = {"done", "terminal", "terminals", "is_terminal", "failure", "failed", "trip"}
"""Names that ends often have, and that are asked about where such a column is not used."""
_COSTS = re.compile(r"(^|_|\b)(cost|loss|penalty|price|error)s?($|_|\b)", re.IGNORECASE)


@settings
class Columns:
    """What the columns of a table stand for; what is not named has its usual name (`obs_0`, `reward`, …)."""

    obs: tuple[ColumnName, ...] = ()
    """Columns of the observation, in this order; `level_*` stands for all that begin so."""
    action: tuple[ColumnName, ...] = ()
    """Columns of the action, in this order."""
    reward: ColumnName | None = None
    """The reward; `-cost` takes the negative of the column `cost`."""
    next_obs: tuple[ColumnName, ...] = ()
    """The observation after the step, as many columns as `obs`; else it is the following row's."""
    episode: ColumnName | None = None
    """Any label that is equal within an episode, such as a batch number."""
    terminated: ColumnName | None = None
    """1 where the task ended: nothing follows."""
    truncated: ColumnName | None = None
    """1 where the log was cut while the task went on."""
    time: ColumnName | None = None
    """Times or dates, by which rows are put in order within each episode."""
    action_low: tuple[Number, ...] | None = None
    """Least value of each action, or one for all."""
    action_high: tuple[Number, ...] | None = None
    """Largest value of each action, or one for all."""
    split_gaps: Rate | None = None
    """End an episode where more than so many usual steps of time are missing; null goes on across gaps."""
    decimal: Literal[".", ","] | None = None
    """What separates the decimals of a text file, where that cannot be told from its numbers."""

    def __post_init__(self) -> None:
        for place in ("obs", "action", "next_obs"):
            names = getattr(self, place)
            if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
                raise ValueError(f"names the column {twice!r:.100} twice in '{place}'")
        if both := next((name for name in self.obs if name in self.action), None):
            raise ValueError(
                f"names the column {both!r:.100} in 'obs' and in 'action': a policy cannot observe what it "
                "is about to do"
            )
        if (self.action_low is None) != (self.action_high is None):
            raise ValueError("has only one of 'action_low' and 'action_high'")
        if self.split_gaps is not None and self.split_gaps <= 1.0:
            raise ValueError("'split_gaps' counts usual steps, so it is above 1")

    @property
    def names_columns(self) -> bool:
        """Whether any column is named, besides bounds that every kind of log can be given."""
        plain = to_plain(self)
        return any(value not in (None, []) for name, value in plain.items() if not name.startswith("action_"))

    def bounds(self, width: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Lower and upper bounds of actions of this width; None where they are not given."""
        if self.action_low is None or self.action_high is None:
            return None
        low, high = (
            given * width if len(given) == 1 else given for given in (self.action_low, self.action_high)
        )
        return low, high


def columns_of(given: Columns | Mapping[str, Any] | None) -> Columns | None:
    """What was given as `columns=`: the settings, or the same as a dictionary."""
    require("columns", given, "mcetm.Columns or a dictionary", Columns, Mapping, NoneType)
    return from_plain(Columns, dict(given), "columns") if isinstance(given, Mapping) else given


def file_beside(path: Path) -> Path:
    """Where a table's columns are described: `plant.mcetm.toml` for `plant.csv`."""
    return path.with_name(path.stem + _SUFFIX)


def columns_beside(path: Path) -> Columns | None:
    """What a file beside a table says of its columns, if there is one."""
    place = file_beside(path)
    if path_kind(place) == "nothing":
        return None
    content = read_toml(place, dict[str, Any])
    try:
        return from_plain(Columns, content)
    except UserError as error:
        raise FileError(place, str(error).rstrip(".").replace("The setting ", "", 1)) from None


@dataclass(frozen=True)
class ColumnPlan:
    """Which columns of one table are read, and as what."""

    fields: Mapping[str, tuple[int, ...]]
    """Places of the columns of each field: `obs`, `action`, `next_obs`, `reward` and both flags."""
    texts: Mapping[str, int]
    """Places of `episode` and `time`, which need not be numbers."""
    negative: bool = False
    """Whether the reward is the negative of its column."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Names and bounds, for the metadata."""
    split_gaps: float | None = None
    """Usual steps of time above which a gap ends an episode."""
    notes: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[int]:
        """Places of the columns that hold numbers, each once."""
        return list(dict.fromkeys(place for places in self.fields.values() for place in places))

    @property
    def flags(self) -> set[int]:
        """Places of those that hold flags."""
        return {place for name in FLAGS for place in self.fields.get(name, ())}

    @property
    def may_be_empty(self) -> set[int]:
        """Places of columns that may be empty at an episode's end."""
        return set(self.fields.get("next_obs", ()))


def plan_of(names: Sequence[str], columns: Columns | None, source: str) -> ColumnPlan:
    """Find the columns of each field; all that cannot be found is told at once."""
    columns = columns or Columns()
    faults: list[Fault] = []
    fields: dict[str, tuple[int, ...]] = {}
    texts: dict[str, int] = {}

    places = {name: place for place, name in reversed([*enumerate(names)])}
    twice = {name for place, name in enumerate(names) if places[name] != place}

    def place_of(name: str) -> int | None:
        if name in places and name not in twice:
            return places[name]
        missing = _unknown(name, names) if len(faults) < _MOST_FAULTS else "is no column of the table"
        faults.append(Fault(one_line(name), "appears twice in the header" if name in twice else missing))
        return None

    def take(field: str, wanted: Sequence[str]) -> None:
        each = [name for given in wanted for name in _matching(given, names)]
        found = (place_of(name) for name in dict.fromkeys(each))
        fields[field] = tuple(place for place in found if place is not None)

    usual = _usual(names, faults, {name for name in ("obs", "action", "next_obs") if getattr(columns, name)})
    for name in ("obs", "action", "next_obs"):
        given = getattr(columns, name)
        if given:
            take(name, given)
        elif name in usual and not (name == "next_obs" and columns.obs):
            take(name, usual[name])
    if "obs" not in fields:
        faults.append(_no_obs(names))
    elif not faults and (after := len(fields.get("next_obs", ()))) not in (0, len(fields["obs"])):
        faults.append(Fault("next_obs", f"has {after} columns, but obs has {len(fields['obs'])}"))
    reward = columns.reward or ("reward" if "reward" in names else None)
    negative = reward is not None and reward not in names and reward.startswith("-")
    if reward is not None:
        take("reward", [reward[1:] if negative else reward])
    for flag in FLAGS:
        name = getattr(columns, flag) or (flag if flag in names else None)
        if name is not None:
            take(flag, [name])
    for text in ("episode", "time"):
        name = getattr(columns, text) or ("episode" if text == "episode" and "episode" in names else None)
        if name is not None and (place := place_of(name)) is not None:
            texts[text] = place
    width = len(fields.get("action", ()))
    bounds = columns.bounds(width)
    if faults:
        raise DataError(source, faults)

    used = {*texts.values(), *(place for places in fields.values() for place in places)}
    ignored = [name for i, name in enumerate(names) if i not in used]
    notes = [f"columns not used: {listed(ignored)}"] if ignored else []
    if "terminated" not in fields:
        notes += [
            f"the column '{name}' is not used; if it marks where the task ended, name it as 'terminated'"
            for name in ignored
            if name.lower() in _ENDS
        ]
    called = reward or ""
    if not negative and _COSTS.search(called):
        notes.append(
            f"the reward '{one_line(called)}' is made as large as possible; if it is a cost, "
            f"write '-{one_line(called)}'"
        )
    called_so = lambda field: tuple(names[i] for i in fields[field])  # noqa: E731
    about: dict[str, Any] = {
        "obs_names": called_so("obs") if columns.obs else None,
        "action_names": called_so("action") if columns.action else None,
        "reward_name": columns.reward,
    }
    if bounds is not None:
        about |= {"action_low": bounds[0], "action_high": bounds[1]}
    return ColumnPlan(fields, texts, negative, about, columns.split_gaps, tuple(notes))


def _matching(wanted: str, names: Sequence[str]) -> list[str]:
    """The columns that a name with stars stands for, in their order; a name without is itself."""
    if "*" not in wanted or wanted in names:
        return [wanted]
    pattern = re.compile(".*".join(map(re.escape, wanted.split("*"))))
    return [name for name in names if pattern.fullmatch(name)] or [wanted]


def _usual(names: Sequence[str], faults: list[Fault], given: set[str]) -> dict[str, list[str]]:
    """Columns with the usual names, `obs_0` and so on, in their order."""
    wide: dict[str, dict[int, str]] = {}
    for name in names:
        match = _WIDE.fullmatch(name)
        if match is None or match[1] in given:
            continue
        if match[2] != str(int(match[2])):
            faults.append(Fault(name, f"must be written {match[1]}_{int(match[2])}"))
        else:
            wide.setdefault(match[1], {})[int(match[2])] = name
    found = {}
    for kind, numbered in wide.items():
        gaps = [i for i in range(len(numbered)) if i not in numbered]
        if gaps:
            faults.append(Fault(f"{kind}_{gaps[0]}", f"is missing, though there is {kind}_{max(numbered)}"))
        found[kind] = [numbered[i] for i in sorted(numbered)]
    return found


def _no_obs(names: Sequence[str]) -> Fault:
    if any(_WIDE.fullmatch(name) or name in ("reward", "episode", *FLAGS) for name in names):
        return Fault("obs_0", "is missing; if the observation has other names, name its columns (obs)")
    return Fault(
        "header",
        "no column has a known name (obs_0, …, action_0, …, reward, …), so say which are which (obs, action, "
        f"reward, …), or let mcetm data describe propose it; the columns are {listed(names)}",
    )


def _unknown(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    lower = [other for other in names if re.sub(r"\s*[\[(].*", "", other).lower() == name.lower()]
    if lower or near:
        return f"is no column of the table; did you mean '{one_line((lower or near)[0])}'?"
    return f"is no column of the table; its columns are {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """Names from a file, in a sentence."""
    shown = ", ".join(one_line(name) or "''" for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")

"""Settings: frozen, checked when they are made, written down as plain data and read back from it.

A class of settings says what each is for in a docstring below it, and which values it can have in its type.
So one declaration serves the constructor, the command line, `config.json` and `mcetm settings`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from mcetm.errors import UserError

_T = TypeVar("_T")

Positive = Annotated[int, Field(strict=True, ge=1, le=10**9)]
"""A whole number of at least 1. Steps are counted in 32 bits on the device."""
NonNegative = Annotated[int, Field(strict=True, ge=0, le=10**9)]
"""A whole number of at least 0."""
Rate = Annotated[float, Field(strict=True, gt=0.0, allow_inf_nan=False)]
"""A number above 0."""
Weight = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]
"""A number of at least 0."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""Any finite number."""
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
"""A number from 0 to 1."""
Fraction = Annotated[float, Field(strict=True, gt=0.0, lt=1.0)]
"""A number between 0 and 1, neither of them included."""
Discount = Annotated[float, Field(strict=True, ge=0.0, lt=1.0)]
"""γ: from 0 to below 1. At 1 the value of an endless task has no bound."""
Switch = Annotated[bool, Field(strict=True)]
"""True or false."""

_NOUN = re.compile(r"^(Input|String|List|Dictionary|Tuple) (?=should )| after validation, not \d+$")
"""What pydantic calls a value, whose name is said here, and what it says twice."""
_CONFIG = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field, Field))
def settings(kind: type[_T]) -> type[_T]:
    """A class of settings: frozen, by keyword only; what cannot be is refused with a `ValidationError`."""
    return checked_dataclass(frozen=True, kw_only=True, config=_CONFIG)(kind)  # pyright: ignore[reportReturnType]


def to_plain(content: Any) -> Any:
    """Settings as JSON holds them."""
    return json.loads(json.dumps(dataclasses.asdict(content)))


def from_plain(kind: type[_T], content: Any, place: str = "") -> _T:
    """Settings from plain data; a mistake is one sentence that begins with the setting's full path."""
    try:
        return _reader_of(kind).validate_python(content)
    except ValidationError as error:
        raise UserError(explain(error, kind, place)) from None


@functools.cache
def _reader_of(kind: Any) -> Any:
    """What checks settings of a class; to make it takes longer than to use it."""
    return TypeAdapter(kind)


def explain(error: ValidationError, kind: Any, place: str = "") -> str:
    """The first fault of several, as one sentence."""
    found = error.errors(include_url=False)[0]
    names, _ = _place_of(kind, found["loc"])
    path = ".".join([place, *names] if place else names) or getattr(kind, "__name__", str(kind))
    if found["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        parent, name = path.rpartition(".")[::2]
        known = _place_of(kind, found["loc"][:-1])[1]
        return unknown_setting(name, [field.name for option in known for field in fields_of(option)], parent)
    if found["type"] == "union_tag_invalid":
        allowed = " or ".join(found.get("ctx", {}).get("expected_tags", "").split(", "))
        return f"The setting '{path}.name' should be {allowed}."
    return f"The setting {path!r:.200} {words_of(found)}."


def words_of(found: Any) -> str:
    """What pydantic says of a value, as the end of a sentence that begins with its name."""
    if found["type"] == "missing":
        return "is missing"
    message = _NOUN.sub("", found["msg"]).removeprefix("Value error, ").rstrip(".")
    value = found.get("input")
    return message if isinstance(value, Mapping) else f"{message}, not {value!r:.80}"


def unknown_setting(name: str, known: Sequence[str], parent: str = "") -> str:
    """A sentence for a name that no setting has."""
    prefix = f"{parent}." if parent else ""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean '{prefix}{nearest[0]}'?" if nearest else f"known here: {', '.join(sorted(known))}."
    return f"There is no setting {prefix + name!r:.200}; {hint}"


def _place_of(kind: Any, path: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """The names of settings along a path, and the classes of settings that can be at its end.

    Where several can be, the path also has the name of the one that was meant; no setting is called so.
    """
    names, options = [], _classes_in(kind)
    for part in path:
        below = {field.name: field for option in options for field in fields_of(option)}
        meant = [o for o in options if any(f.name == "name" and f.default == part for f in fields_of(o))]
        if part not in below and meant:
            options = meant
            continue
        names.append(str(part))
        options = _classes_in(below[part].type) if part in below else []
    return names, options


def _classes_in(kind: Any) -> list[Any]:
    """The classes of settings that a type allows."""
    if dataclasses.is_dataclass(kind):
        return [kind]
    return [found for inner in get_args(kind) for found in _classes_in(inner)]


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of a class, as a person reads of it."""

    name: str
    type: Any
    default: Any
    text: str
    """Its docstring."""
    range: str
    """Which values it can have."""


def fields_of(kind: Any) -> Iterator[Setting]:
    """The settings of a class in order, with their docstrings; nothing for what is not one."""
    for name, info in getattr(kind, "__pydantic_fields__", {}).items():
        default = info.get_default(call_default_factory=True)
        # A subclass does not inherit docstrings below fields, only the fields.
        texts = (getattr(base, "__pydantic_fields__", {}).get(name) for base in kind.__mro__)
        text = next((found.description for found in texts if found and found.description), "")
        text = " ".join(text.split())
        yield Setting(name, info.annotation, default, text, _range(info.annotation, info.metadata))


def rows_of(found: Any, place: str = "", skip: Sequence[str] = ()) -> list[tuple[str, str, str, str]]:
    """Path, value, range and docstring of every setting, those of parts below them."""
    rows = []
    for setting in fields_of(type(found)):
        if setting.name in skip:
            continue
        path = f"{place}.{setting.name}" if place else setting.name
        value = getattr(found, setting.name)
        if dataclasses.is_dataclass(value):
            rows.extend(rows_of(value, path))
        else:
            rows.append((path, json.dumps(value), setting.range, setting.text))
    return rows


def _range(kind: Any, metadata: Sequence[Any] = ()) -> str:
    """The values of a type in a few characters."""
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        return _range(kind, [part for item in more for part in getattr(item, "metadata", [item])])
    if get_origin(kind) is Literal:
        return ", ".join(str(choice) for choice in get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_range(option, metadata) for option in get_args(kind))
    if get_origin(kind) is tuple:
        return "list of " + _range(get_args(kind)[0])
    name = {bool: "true, false", int: "whole number", float: "number", str: "text", NoneType: "null"}.get(
        kind
    )
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    bounds = [
        f"{sign} {getattr(item, bound):g}"
        for item in metadata
        for bound, sign in signs.items()
        if hasattr(item, bound) and getattr(item, bound) < 10**9
    ]
    return " ".join([name or getattr(kind, "__name__", str(kind)), *bounds])

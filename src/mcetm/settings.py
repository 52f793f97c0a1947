"""Settings: frozen, checked when they are made, written down as plain data and read back from it.

A class of settings says what each is for in a docstring below it, and which values it can have in its type.
So one declaration serves the constructor, the command line, `config.json` and `mcetm settings`.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from mcetm.errors import UserError

_T = TypeVar("_T")

Positive = Annotated[int, Field(strict=True, ge=1, le=2**40)]
"""A whole number of at least 1."""
NonNegative = Annotated[int, Field(strict=True, ge=0, le=2**40)]
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
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise UserError(explain(error, kind, place)) from None


def explain(error: ValidationError, kind: Any, place: str = "") -> str:
    """The first fault of several, as one sentence."""
    found = error.errors(include_url=False)[0]
    path = ".".join(part for part in (place, *(str(part) for part in found["loc"])) if part)
    if found["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        parent, name = path.rpartition(".")[::2]
        return unknown_setting(name, _fields_at(kind, found["loc"][:-1]), parent)
    message = "is missing" if found["type"] == "missing" else found["msg"].removeprefix("Input ").rstrip(".")
    value = found.get("input")
    given = "" if isinstance(value, Mapping) or found["type"] == "missing" else f", not {value!r:.80}"
    return f"The setting '{path}' {message.removeprefix('Value error, ')}{given}."


def unknown_setting(name: str, known: Sequence[str], parent: str = "") -> str:
    """A sentence for a name that no setting has."""
    prefix = f"{parent}." if parent else ""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean '{prefix}{nearest[0]}'?" if nearest else f"known here: {', '.join(sorted(known))}."
    return f"There is no setting '{prefix}{name}'; {hint}"


def _fields_at(kind: Any, path: Sequence[Any]) -> list[str]:
    """Names of the settings below a path, as far as the types tell."""
    for part in path:
        kind = next((f.type for f in fields_of(kind) if f.name == part), None)
    return [field.name for field in fields_of(kind)]


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting of a class, as a person reads of it."""

    name: str
    type: Any
    default: Any
    text: str


def fields_of(kind: Any) -> Iterator[Setting]:
    """The settings of a class in order, with their docstrings; nothing for what is not one."""
    for name, info in getattr(kind, "__pydantic_fields__", {}).items():
        default = info.get_default(call_default_factory=True)
        yield Setting(name, info.annotation, default, info.description or "")

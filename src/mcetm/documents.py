"""Plain data read from files that anybody may have written: one reader, and a schema for each kind of file.

A file is read whole, once, and only if it is a plain file of a sensible size. Its JSON must be plain too: no
key twice, no number that is not finite, no deep nesting, no text that cannot be written again. Then a schema,
which is a subclass of `Record` or any other type that pydantic knows, says what the rest means. Whatever is
wrong is one sentence that names the file and the place in it.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mcetm.errors import UserError
from mcetm.files import path_kind
from mcetm.settings import words_of

__all__ = [
    "Checksum",
    "Count",
    "FileError",
    "FileName",
    "Finite",
    "Label",
    "Name",
    "Record",
    "Text",
    "checked",
    "parse",
    "parse_toml",
    "read_bytes",
    "read_json",
    "read_toml",
    "require_plain",
]

_LARGEST = 2**26
"""Bytes of a file of settings or results; ours have a few thousand."""
_DEEPEST = 40
"""Lists and objects inside each other; ours have ten."""


class FileError(UserError):
    """A file that cannot be used as what it should be."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} cannot be used: {why}.")


class Record(BaseModel):
    """A schema: fields that are not in it are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def _without_control(text: str) -> str:
    if not text.isprintable():
        raise ValueError("should have no control characters")
    return text


def _of_a_folder(text: str) -> str:
    # A label becomes the name of a folder inside the run.
    if any(sign in text for sign in "/\\:\0") or text.strip(" .") == "":
        raise ValueError("should have letters and no slashes")
    return text


Text = Annotated[str, Field(max_length=4096), AfterValidator(_without_control)]
"""Text on one line."""
Label = Annotated[
    str, Field(min_length=1, max_length=100), AfterValidator(_without_control), AfterValidator(_of_a_folder)
]
"""What a table calls something, and a folder."""
FileName = Annotated[
    str, Field(min_length=1, max_length=200), AfterValidator(_without_control), AfterValidator(_of_a_folder)
]
"""A file or a folder inside another one."""
Name = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_without_control)]
"""A name or a path."""
Finite = Annotated[float, Field(ge=-1e30, le=1e30, allow_inf_nan=False)]
"""A number of which sums and squares are numbers too."""
Count = Annotated[int, Field(ge=0, le=2**40)]
"""A whole number of at least 0."""
Checksum = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256."""


def require_plain(path: Path, *, largest: int | None = None) -> None:
    """Refuse what cannot be read, and a device or a pipe, which might never end."""
    if path_kind(path) in ("folder", "other"):
        raise FileError(path, "it is not a plain file")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise FileError(path, f"it cannot be read ({error.strerror or error})") from None
    if largest is not None and size > largest:
        raise FileError(path, f"it has {size:,} bytes, and at most {largest:,} are expected")


def read_bytes(path: Path, *, largest: int | None = None) -> bytes:
    """All bytes of a plain file."""
    require_plain(path, largest=largest)
    return path.read_bytes()


def read_json(path: Path, kind: Any, *, largest: int = _LARGEST) -> Any:
    """The content of a JSON file, as its schema has it."""
    return checked(path, parse(path, read_bytes(path, largest=largest)), kind)


def read_toml(path: Path, kind: Any, *, largest: int = _LARGEST) -> Any:
    """The content of a TOML file, as its schema has it."""
    return checked(path, parse_toml(path, read_bytes(path, largest=largest)), kind)


def parse_toml(path: Path, content: bytes) -> dict[str, Any]:
    """Plain data of TOML."""
    try:
        found = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise FileError(path, "it is not UTF-8") from None
    except RecursionError:
        raise FileError(path, "it is nested too deeply") from None
    except ValueError as error:
        raise FileError(path, f"it is not TOML ({error})") from None
    if fault := _fault(found):
        raise FileError(path, fault)
    return found


def parse(path: Path, content: bytes, place: str = "") -> Any:
    """Plain data of JSON; `place` says where in the file it is, where that is not the whole file."""
    prefix = f"{place}: " if place else ""
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise FileError(path, f"{prefix}it is not UTF-8") from None
    except RecursionError:
        raise FileError(path, f"{prefix}it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise FileError(path, f"{prefix}it is not JSON ({error})") from None
    except ValueError as error:  # a number with thousands of digits, or a key that is there twice
        raise FileError(path, prefix + str(error)) from None
    if fault := _fault(found):
        raise FileError(path, prefix + fault)
    return found


def checked(path: Path, content: Any, kind: Any, place: str = "") -> Any:
    """Plain data as a schema has it."""
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in found["loc"])
        if found["type"] == "extra_forbidden":
            words = f"{where!r:.100} is not known there"
        else:
            said = "should be an object" if found["type"] == "model_type" else words_of(found)
            words = f"{where!r:.100} {said}" if where else f"it {said}"
        raise FileError(path, f"{place}: {words}" if place else words) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{twice!r:.100} is there twice")
    return found


def _fault(content: Any) -> str:
    """What no file of ours has, whatever its schema; without recursion, which depth could exhaust."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(content, ())]
    while waiting:
        value, place = waiting.pop()
        inner: Sequence[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            inner = list(value.items())
        elif isinstance(value, list):
            inner = list(enumerate(value))
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{'.'.join(place)!r:.100} is {value}, which is not a finite number"
        for text in (value, *(name for name, _ in inner)):
            if isinstance(text, str) and not _writable(text):
                return f"{'.'.join(place)!r:.100} has text that is not Unicode"
        if inner and len(place) >= _DEEPEST:
            return "it is nested too deeply"
        waiting.extend((part, (*place, str(name))) for name, part in inner)
    return ""


def _writable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)

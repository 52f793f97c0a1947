"""The metadata of a log as JSON: what our own files carry beside the arrays, with their checksum."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from mcetm.console import one_line
from mcetm.data.names import are_names, is_name
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions, build
from mcetm.errors import UserError
from mcetm.tasks.registry import get_task, is_at_hand

_FORMAT = 1
_CAN_BE_ABSENT = {"action", "reward"}
_LONGEST_NOTE = 500


@dataclass(frozen=True)
class Stored:
    """What a file says about the arrays in it."""

    metadata: Metadata
    checksum: str | None = None
    """Of the arrays as they were written; None in files of other makers."""
    task_note: str = ""
    """Why the file's own task is not used, if it names one."""

    def build(
        self, fields: Mapping[str, Any], *, infos: Mapping[str, Any], **options: Unpack[ReadOptions]
    ) -> Transitions:
        """Transitions from the file's arrays, which must be those that were written."""
        present = {name: array for name, array in fields.items() if name not in self.metadata.absent}
        ours, metadata = self.checksum is not None, self.metadata
        if self.task_note and metadata.task is None and not options.get("task"):
            metadata = replace(metadata, notes=(*metadata.notes, self.task_note))
        transitions = build(present, metadata, infos=infos, ends_are_marked=ours, **options)
        if ours and transitions.checksum != self.checksum:
            raise UserError(
                f"{self.metadata.source} was changed or damaged after it was written: its data differ from "
                "the checksum stored with them."
            )
        return transitions


def encode(transitions: Transitions) -> str:
    """Everything about a log that must survive a save and a load."""
    metadata = transitions.metadata
    return json.dumps(
        {
            "format": _FORMAT,
            "checksum": transitions.checksum,
            "task": metadata.task,
            "action_low": metadata.action_low,
            "action_high": metadata.action_high,
            "obs_names": metadata.obs_names,
            "action_names": metadata.action_names,
            "reward_name": metadata.reward_name,
            "absent": sorted(metadata.absent),
            "dropped": metadata.dropped,
            "notes": list(metadata.notes),
            "provenance": dict(metadata.provenance),
        },
        sort_keys=True,
    )


def decode(text: Any, source: str) -> Stored:
    """The counterpart of `encode`; None (a file of another maker) says nothing."""
    if text is None:
        return Stored(Metadata(source=source))
    try:
        header = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise DataError(source, [Fault("header", "the stored metadata is damaged")])
    if header.get("format") != _FORMAT:
        found = one_line(repr(header.get("format")))
        message = f"is of format {found}, but this version of mcetm reads format {_FORMAT}"
        raise DataError(source, [Fault("header", message)])
    header = {**_LATER, **header}
    faults = [
        Fault("header", f"the stored metadata is damaged: '{name}' {_why(header, name, wanted)}")
        for name, (good, wanted) in _GOOD.items()
        if name not in header or not good(header[name])
    ]
    if faults:
        raise DataError(source, faults)
    low, high = (
        None if header[key] is None else tuple(map(float, header[key]))
        for key in ("action_low", "action_high")
    )
    obs_names, action_names = (
        None if header[key] is None else tuple(header[key]) for key in ("obs_names", "action_names")
    )
    task, notes = header["task"], tuple(one_line(note, _LONGEST_NOTE) for note in header["notes"])
    why = "" if task is None else why_not(task)
    task = None if why else task
    metadata = Metadata(
        source=source,
        task=task,
        action_low=low,
        action_high=high,
        obs_names=obs_names,
        action_names=action_names,
        reward_name=header["reward_name"],
        absent=frozenset(header["absent"]),
        dropped=header["dropped"],
        notes=notes,
        provenance=header["provenance"],
    )
    return Stored(metadata, header["checksum"], why)


def why_not(task: str) -> str:
    """Why the task that a file names cannot be used, or nothing where it can; no module is imported."""
    name = one_line(task)
    if not is_at_hand(task):
        way = name if ":" in name else f"MODULE:{name}"
        return f"the file's task '{name}' is not registered here; --task {way} imports it"
    try:
        get_task(task)
    except UserError as error:
        return one_line(f"the file's task '{name}' cannot be used: {error}", _LONGEST_NOTE)
    return ""


def _why(header: dict[str, Any], name: str, wanted: str) -> str:
    """What is wrong with a field of the header."""
    return f"should be {wanted}, not {one_line(repr(header[name]))}" if name in header else "is missing"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _are_bounds(value: Any) -> bool:
    """No bounds, or numbers that single precision can hold; infinite ones too, but not NaN."""
    return value is None or (isinstance(value, list) and all(_is_bound(item) for item in value))


def _is_bound(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
    return whole or (isinstance(value, float) and value == value)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_LATER = {"obs_names": None, "action_names": None, "reward_name": None}
"""Fields that earlier files do not have, and what they mean then."""

_NAMES = "a list of names, each once, or null"
_GOOD: dict[str, tuple[Callable[[Any], bool], str]] = {
    "checksum": (
        lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
        "64 digits of a SHA-256",
    ),
    "task": (lambda value: value is None or isinstance(value, str), "a name or null"),
    "action_low": (_are_bounds, "a list of numbers or null"),
    "action_high": (_are_bounds, "a list of numbers or null"),
    "obs_names": (are_names, _NAMES),
    "action_names": (are_names, _NAMES),
    "reward_name": (lambda value: value is None or is_name(value), "a name or null"),
    "absent": (
        lambda value: _are_words(value) and set(value) <= _CAN_BE_ABSENT,
        f"a list of {', '.join(sorted(_CAN_BE_ABSENT))}",
    ),
    "dropped": (_is_count, "a number of rows"),
    "notes": (_are_words, "a list of sentences"),
    "provenance": (lambda value: isinstance(value, dict), "an object"),
}
"""Whether a field of the header is what `encode` writes, and that in words."""

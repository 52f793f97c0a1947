"""The metadata of a log as JSON: what our own files carry beside the arrays."""

from __future__ import annotations

import json

from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault
from mcetm.tasks.registry import task_names

_FORMAT = 1


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
            "absent": sorted(metadata.absent),
            "dropped": metadata.dropped,
            "notes": list(metadata.notes),
            "provenance": dict(metadata.provenance),
        },
        sort_keys=True,
    )


def decode(text: str | bytes | None, source: str) -> Metadata:
    """The counterpart of `encode`; None (a file of another maker) says nothing."""
    if text is None:
        return Metadata(source=source)
    try:
        header = json.loads(text)
        if header["format"] != _FORMAT:
            message = f"is of format {header['format']}, but this version of mcetm reads format {_FORMAT}"
            raise DataError(source, [Fault("header", message)])
        low, high = (
            None if header[key] is None else tuple(map(float, header[key]))
            for key in ("action_low", "action_high")
        )
        task, notes = header["task"], tuple(header["notes"])
        if task is not None and task not in task_names():
            note = f"the file's task '{task}' is not registered here; --task MODULE:{task} imports it"
            task, notes = None, (*notes, note)
        return Metadata(
            source=source,
            task=task,
            action_low=low,
            action_high=high,
            absent=frozenset(header["absent"]),
            dropped=int(header["dropped"]),
            notes=notes,
            stored_checksum=header["checksum"],
            provenance=header["provenance"],
        )
    except (ValueError, KeyError, TypeError):
        raise DataError(source, [Fault("header", "the stored metadata is damaged")]) from None

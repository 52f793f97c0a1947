"""Parts of a study that are kept when done, so that a stopped study goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcetm.files import write_json


def kept(path: Path, setting: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The part in this file if it was made under the same setting, else a new one, written there."""
    found = lookup(path, setting)
    if found is None:
        write_json(path, {"setting": setting, "result": make()})
        found = lookup(path, setting)
        assert found is not None  # noqa: S101 (it was just written)
    return found


def lookup(path: Path, setting: dict[str, Any]) -> dict[str, Any] | None:
    """The part in this file, if there is one and it was made under the same setting."""
    if path.exists():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["setting"] == json.loads(json.dumps(setting)):
                return found["result"]
        except (ValueError, KeyError, TypeError):
            pass  # damaged or of another kind: made anew
    return None

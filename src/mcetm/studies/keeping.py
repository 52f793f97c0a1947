"""Parts of a study that are kept when done, so that a stopped study goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.files import atomic_write


def kept(path: Path, setting: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The part in this file if it was made under the same setting, else a new one, written there."""
    wanted = json.loads(json.dumps(setting, default=_plain))
    if path.exists():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["setting"] == wanted:
                return found["result"]
        except (ValueError, KeyError, TypeError):
            pass  # damaged or of another kind: made anew
    write_json(path, {"setting": wanted, "result": make()})
    return json.loads(path.read_text(encoding="utf-8"))["result"]


def write_json(path: Path, content: Any) -> None:
    """Write plain data, whole or not at all; arrays become lists."""
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, default=_plain) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in JSON")

"""Parts of a study that are kept when done, so that a stopped study goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcetm.files import write_json


def kept(path: Path, setting: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The part in this file if it was made under the same setting, else a new one, written there."""
    wanted = json.loads(json.dumps(setting))
    if path.exists():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["setting"] == wanted:
                return found["result"]
        except (ValueError, KeyError, TypeError):
            pass  # damaged or of another kind: made anew
    write_json(path, {"setting": wanted, "result": make()})
    return json.loads(path.read_text(encoding="utf-8"))["result"]

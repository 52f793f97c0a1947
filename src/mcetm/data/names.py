"""Names of columns: what may be one, wherever it comes from."""

from __future__ import annotations

from typing import Any

MOST_LETTERS = 200


def is_name(value: Any) -> bool:
    """Whether this can name a column: text on one line that can be shown, and not too long."""
    return isinstance(value, str) and 0 < len(value) <= MOST_LETTERS and value.isprintable()


def are_names(value: Any) -> bool:
    """No names, or a list of some, each once."""
    if value is None:
        return True
    return isinstance(value, list | tuple) and all(map(is_name, value)) and len(set(value)) == len(value)

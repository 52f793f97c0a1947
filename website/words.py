"""Small parts of generated Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text that stands in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def code(text: str) -> str:
    """Code in a line, also where it stands in a cell."""
    return f"`{cell(text).replace('&lt;', '<')}`" if text else ""


def first_sentence(docstring: str | None) -> str:
    """What a docstring's first paragraph says, with single backquotes as Markdown has them."""
    first = (docstring or "").strip().split("\n\n")[0]
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(first.split()))

"""Numbers, texts and comments as C has them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def table(part: str, about: Mapping[str, Any], width: int) -> str:
    """What each number is: its place in the array, its name, and its usual size or its bounds."""
    names = about.get(f"{part}_names") or [""] * width
    sides = ("obs_mean", "obs_std") if part == "obs" else ("action_low", "action_high")
    numbers = [about.get(side) or [None] * width for side in sides]
    lines = []
    for i, (name, first, second) in enumerate(zip(names, *numbers, strict=True)):
        words = "mean {:.6g}, spread {:.6g} in the log" if part == "obs" else "from {:.6g} to {:.6g}"
        said = "" if first is None or second is None else words.format(first, second)
        place = f"{part}[{i}]"
        lines.append(f" *   {place:<12}{comment(name)}{': ' if name and said else ''}{said}".rstrip())
    return "\n".join(lines)


def rarity(scores: Mapping[str, float]) -> str:
    """How rare which score is among pairs of the log, as lines of a comment."""
    if not scores:
        return ""
    said = ", ".join(f"one in {many} above {score:.4g}" for many, score in scores.items())
    lines = textwrap.wrap(f"Scores of fresh pairs of the log: {said}.", 105)
    return "".join(f"\n * {line}" for line in lines)


def constant(name: str, array: np.ndarray) -> str:
    """The definition of an array of float32."""
    shape = "".join(f"[{n}]" for n in array.shape)
    rows = [array] if array.ndim == 1 else list(array)
    lines = [", ".join(number(value) for value in row) for row in rows]
    inner = lines[0] if array.ndim == 1 else ",\n".join(f"  {{{line}}}" for line in lines)
    opened = "{" if array.ndim == 1 else "{\n"
    return f"static const float {name}{shape} = {opened}{inner}{'' if array.ndim == 1 else chr(10)}}};\n\n"


def number(value: Any) -> str:
    """A float32 that C reads back to the same bits."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def string(text: str) -> str:
    """A C string of any text; octal escapes end by themselves and no compiler sees a trigraph."""
    signs = (
        chr(byte) if (chr(byte).isalnum() and byte < 128) or chr(byte) in " _.,:-" else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{"".join(signs)}"'


def comment(value: Any) -> str:
    """Anything on one line of a comment, which it cannot end."""
    shown: Sequence[Any] = value if isinstance(value, list) else [value]
    text = ", ".join(f"{part:.6g}" if isinstance(part, float) else str(part) for part in shown)
    return re.sub(r"[^ -~]|[\\*?]", "_", text)


def identifier(stem: str) -> str:
    """The name of a file as the beginning of a name in C."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_").lower()
    return name if name[:1].isalpha() else f"policy_{name}".rstrip("_")

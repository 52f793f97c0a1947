"""A command line that cannot be understood, as one sentence; tyro draws boxes, and speaks of Python."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Sequence

from mcetm.console import one_line, say

_LONGEST = 400
_FRAME = re.compile(r"^[╭╮╰╯│┃|] ?|[╭╮╰╯│┃|]$")
_RULE = re.compile(r"^[\s─━-]{8,}$")
_NO_VALUE = re.compile(r"Missing value for argument '([^']+)'")
_CHOICE = re.compile(r"invalid choice '(.*?)' for argument '([^']+)'\. Expected one of \((.*?)\)")
_VALUE = re.compile(r"Error parsing (--?[\w-]+)")
_UNKNOWN = re.compile(r"Unrecognized options: (.*?)(?: Available subcommands: (.*))?$")
_PARTS = {"data", "study"}
"""Commands that have commands of their own."""


@contextlib.contextmanager
def in_one_sentence(arguments: Sequence[str]) -> Iterator[None]:
    """What is printed when an option cannot be understood is one sentence; the exit code stays 2."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            yield
    except SystemExit as stop:
        if stop.code == 2:
            say(f"mcetm: {_sentence(printed.getvalue(), arguments)}", file=sys.stderr)
        else:
            sys.stderr.write(printed.getvalue())
        raise


def _sentence(printed: str, arguments: Sequence[str]) -> str:
    """What tyro's boxes say, in plain words, and where more is said."""
    lines = [_FRAME.sub("", line.rstrip()).rstrip() for line in printed.split("\n")]
    lines = [line for line in lines if line and not _RULE.match(line)][1:]  # the first is a title
    end = next((i for i, line in enumerate(lines) if "full helptext" in line), len(lines))
    text = " ".join(" ".join(lines[:end]).split())
    words = _words(text, lines[:end], arguments)
    return f"{words}." if "; there are" in words else f"{words}; see {_command(arguments)} --help."


def _words(text: str, lines: Sequence[str], arguments: Sequence[str]) -> str:
    if found := _CHOICE.search(text):
        value, option, choices = found.groups()
        known = sorted(name.strip(" '\"") for name in choices.split(","))  # tyro has them in any order
        known = ", ".join(name for name in known if name not in ("None", ""))
        return f"{option} takes one of {known}, not {value!r:.60}"
    if found := _NO_VALUE.search(text):
        option = found[1]
        following = _value_of(option, arguments)
        hint = f" (write {option}={following} if that is meant)" if following.startswith("-") else ""
        return f"{option} needs a value{hint}"
    if found := _VALUE.search(text):
        kind = "a whole number" if "int()" in text else "a number"
        return f"{found[1]} takes {kind}, not {_value_of(found[1], arguments)!r:.60}"
    if text.startswith("Missing from"):
        deep = [len(line) - len(line.lstrip()) for line in lines]
        names = [line.strip() for line, by in zip(lines[1:], deep[1:], strict=True) if by == deep[1]]
        return f"{_command(arguments)} needs {', '.join(names)}"
    if found := _UNKNOWN.match(text):
        unknown, known = found.groups()
        return f"{one_line(unknown)!r} is not known here" + (f"; there are {known}" if known else "")
    return one_line(text, _LONGEST).rstrip(".")


def _value_of(option: str, arguments: Sequence[str]) -> str:
    """What was given for an option."""
    for place, text in reversed([*enumerate(arguments)]):
        if text == option:
            return next(iter(arguments[place + 1 :]), "")
        if text.startswith(f"{option}="):
            return text.partition("=")[2]
    return ""


def _command(arguments: Sequence[str]) -> str:
    """The command that was meant, as far as that can be told."""
    most = 2 if arguments[0] in _PARTS else 1
    words = [text for text in arguments[:most] if text.isascii() and text.replace("-", "").isalpha()]
    return " ".join(["mcetm", *(word for word in words if not word.startswith("-"))])

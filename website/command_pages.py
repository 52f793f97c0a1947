"""Every command and every option, from the same declarations as `mcetm --help`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any, cast

import tyro

from mcetm.cli import commands, options
from words import cell, code, table

_INTRO = """# The command line

*For people who type commands. Here you find every command, every option, and what each of them does.*

`mcetm COMMAND --help` prints the same in a terminal. Options can stand in any order.
Exit codes: 0 is success, 2 a mistake that one sentence explains, 130 an interruption.
Files that a command reads are on [their own page](files.md), [settings](settings/index.md) too.

"""


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command with its parser, those that are in others after them."""
    for name, kind in commands().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            parser = tyro.extras.get_parser(kind, config=options())
        yield name, cast(argparse.ArgumentParser, parser)  # tyro has a copy of the class
        yield from _inner(name, cast(argparse.ArgumentParser, parser))


def _inner(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below, found in action.choices.items():
                yield f"{name} {below}", found
                yield from _inner(f"{name} {below}", found)


def _takes(action: Any) -> str:
    """What follows an option."""
    if action.nargs == 0:
        return ""
    if action.choices:
        return ", ".join(code(str(choice)) for choice in action.choices)
    return code(str(action.metavar or "").split(" ")[0] + (" …" if action.nargs in ("*", "+") else ""))


def _row(action: Any) -> list[str]:
    name = ", ".join(code(option) for option in action.option_strings) or code(str(action.metavar))
    return [name, _takes(action), cell(str(action.help or ""))]


def command_pages() -> dict[str, str]:
    """The page by its place below `reference/`."""
    parts = [_INTRO]
    for name, parser in _parsers():
        actions = [a for a in parser._actions if not isinstance(a, argparse._SubParsersAction)]
        rows = [_row(action) for action in actions if action.dest != "help"]
        level = "#" * (1 + len(name.split()))
        parts.append(f"{level} `mcetm {name}`\n\n{parser.description or ''}\n")
        if rows:
            parts.append(table(["argument", "takes", "what it does"], rows))
    return {"command-line.md": "\n".join(parts)}

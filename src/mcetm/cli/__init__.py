"""The command `mcetm`: what a person types. Heavy imports wait until a command runs."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, runtime_checkable

from mcetm.cli.compare import Compare
from mcetm.cli.data import Data
from mcetm.cli.estimate import Estimate, Select
from mcetm.cli.export import Export
from mcetm.cli.parsing import in_one_sentence
from mcetm.cli.report import Report
from mcetm.cli.settings import ListSettings
from mcetm.cli.signals import INTERRUPTED, interruptible
from mcetm.cli.sweep import Sweep
from mcetm.cli.train import Evaluate, Train
from mcetm.cli.trust import TrustOf
from mcetm.console import say
from mcetm.errors import UserError
from mcetm.files import NO_SPACE, REFUSALS
from mcetm.memory import is_shortage

_DESCRIPTION = """Offline reinforcement learning that says where it can be trusted.

Begin with: mcetm train

Which version this is: mcetm --version"""


_LONG = re.compile(r"\S{241,}")


@runtime_checkable
class Command(Protocol):
    """A frozen dataclass whose fields are the command's options."""

    def run(self) -> int:
        """Do the job; the result is the exit code."""
        ...


_COMMANDS: dict[str, type[Command]] = {
    "data": Data,
    "train": Train,
    "sweep": Sweep,
    "evaluate": Evaluate,
    "estimate": Estimate,
    "select": Select,
    "compare": Compare,
    "report": Report,
    "trust": TrustOf,
    "export": Export,
    "settings": ListSettings,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 is success, 2 a mistake the user can mend, 130 an interruption."""
    with interruptible():
        return _main(list(sys.argv[1:] if arguments is None else arguments))


def command() -> NoReturn:
    """`mcetm` as a program of its own."""
    code = main()
    if code == INTERRUPTED:
        # Whoever is in a hurry may press again, and an interpreter that is taken down then is not pretty.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _main(arguments: list[str]) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # never fail for a character the terminal lacks
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except UserError as error:
        _refuse(str(error))
        return 2
    except KeyboardInterrupt:
        print("mcetm: interrupted; nothing half-written was left behind.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough, as in `mcetm … | head`
        _drop_output()
        return 0
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        _drop_output()
        full = error.errno in NO_SPACE
        place = f"{' for' if full else ''} {error.filename}" if error.filename else ""
        what = "There is no room" if full else "Cannot use"
        _refuse(f"{what}{place}: {error.strerror}.")
        return 2
    except (MemoryError, RuntimeError) as error:
        if not is_shortage(error):
            raise
        _refuse("There is not enough memory for this.")
        return 2


def _refuse(words: str) -> None:
    """Say why not; names that are longer than a line are shown by their ends."""
    say(f"mcetm: {_LONG.sub(lambda found: f'{found[0][:80]}…{found[0][-40:]}', words)}", file=sys.stderr)


def _drop_output() -> None:
    """Throw away what can no longer be printed; it would fail again when the process ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from mcetm.versions import version_of

        print(f"mcetm {version_of('mcetm')}")
        return 0
    import tyro

    known = _COMMANDS if arguments[:1] and arguments[0] in _COMMANDS else commands()
    arguments = arguments or ["--help"]
    with in_one_sentence(arguments):
        command: Command = tyro.extras.subcommand_cli_from_dict(
            known, prog="mcetm", description=_DESCRIPTION, args=arguments, config=options()
        )
    try:
        return command.run()
    except SystemExit:  # commands return their exit codes
        raise UserError("Code that mcetm was asked to import ended the program (sys.exit).") from None


def options() -> tuple[Any, ...]:
    """How options are spelled; the reference on the site is made with the same."""
    from tyro import conf

    return (conf.OmitArgPrefixes, conf.OmitSubcommandPrefixes, conf.FlagCreatePairsOff)


def commands() -> dict[str, type[Command]]:
    """Every command by its name, those of other packages too."""
    return _COMMANDS | _added()


def _added() -> dict[str, type[Command]]:
    """Commands of other packages: what the entry points of the group `mcetm.commands` name."""
    from importlib import import_module, metadata, util

    found = {entry.name: entry.load() for entry in metadata.entry_points(group="mcetm.commands")}
    if not found and util.find_spec("mcetm_experiments"):  # in a source tree that nobody installed
        found = import_module("mcetm_experiments.cli").COMMANDS
    return dict(sorted(found.items()))

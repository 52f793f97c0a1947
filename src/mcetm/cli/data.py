"""`mcetm data`: look at, describe, collect, convert and find datasets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg, subcommand

from mcetm.cli.columns import ColumnOptions
from mcetm.console import say

if TYPE_CHECKING:
    from mcetm.data import Transitions

Flag = Annotated[bool, arg(help_behavior_hint="")]
Source = Annotated[str, arg(metavar="SOURCE")]
Number = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Name = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Folder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]


@dataclass(frozen=True)
class Inspect:
    """Print the card of a dataset, or all that makes it unusable (exit code 2)."""

    source: Positional[Source]
    """A file (.hdf5, .npz, .csv, .parquet), a name from `mcetm data list`, or a Minari id."""

    task: Name = None
    """Task the data belong to, where the source does not say: gives action bounds and scores."""

    min_transitions: int = 10
    """Call data with fewer usable transitions unusable."""

    time_limit: Number = None
    """Steps after which episodes were cut, for logs that do not mark it."""

    folder: Folder = None
    """Folder to look in for D4RL's files, besides $MCETM_DATA and the cache."""

    json: Flag = False
    """Print the card as JSON."""

    columns: ColumnOptions = field(default_factory=ColumnOptions)

    def run(self) -> int:
        """Read, look, print."""
        from mcetm.data import DataError, make_card
        from mcetm.envs import load_dataset
        from mcetm.errors import UserError
        from mcetm.tasks.own import remember

        try:
            remember(self.task)
            transitions = load_dataset(
                self.source,
                folder=self.folder,
                task=self.task,
                min_transitions=self.min_transitions,
                time_limit=self.time_limit,
                columns=self.columns.settings(self.source),
            )
        except UserError as error:
            if not self.json:
                raise
            faults = error.faults if isinstance(error, DataError) else ()
            _print_json({"source": self.source, "error": str(error), "faults": [vars(f) for f in faults]})
            return 2
        card = make_card(transitions)
        if self.json:
            _print_json(card.to_dict())
        else:
            from mcetm.console import output
            from mcetm.report.card import show_card

            show_card(card, output())
        return 0


@dataclass(frozen=True)
class Collect:
    """Collect a dataset in a simulator and write it in D4RL's HDF5 layout."""

    task: Annotated[str, arg(metavar="NAME")]
    """A task, a Gymnasium id, MODULE:CLASS, or a named dataset with a recipe of its own: hopper-medium."""

    out: Annotated[Path, arg(metavar="FILE")]
    """File to write (.hdf5 or .npz)."""

    steps: Number = None
    """Transitions to collect; a named dataset has a size of its own."""

    policy: Annotated[tuple[str, ...], arg(metavar="WHO [WHO ...]", help_behavior_hint="")] = ()
    """Who acts: uniform (the default), swing-up, swing-up-noisy, or weights (.npz, D4RL .hdf5)."""

    mix: Flag = False
    """Let each episode draw one of several policies; otherwise they collect equal shares in turn."""

    deterministic: Flag = False
    """Let networks act with their mode instead of a sample."""

    seed: int = 0
    """The same seed gives the same data, whatever the number of processes."""

    processes: Number = None
    """Simulator processes; one per core by default."""

    compress: Flag = False
    """Compress the HDF5 file: about half the size, several times slower to write and read."""

    force: Flag = False
    """Replace an existing file."""

    def run(self) -> int:
        """Collect, write, say what was written."""
        from mcetm.data.files import write_file
        from mcetm.errors import UserError
        from mcetm.numbers import number
        from mcetm.tasks.own import remember

        _check_out(self.out, replace=self.force)
        if self.steps is not None and self.steps < 1:
            raise UserError(f"--steps must be at least 1, not {self.steps}.")
        remember(self.task)
        transitions = self._collect()
        write_file(transitions, self.out, compress=self.compress)
        mean = number(float(transitions.episode_returns.mean()))
        say(
            f"wrote {self.out}: {len(transitions):,} transitions in {transitions.num_episodes:,} episodes, "
            f"mean return {mean}"
        )
        return 0

    def _collect(self) -> Transitions:
        from mcetm.envs import collect, collect_recipe
        from mcetm.errors import UserError
        from mcetm.tasks import RECIPES, task_names
        from mcetm.tasks.registry import is_at_hand, suggestion

        if self.task in RECIPES:
            if self.policy or self.mix or self.deterministic:
                raise UserError(
                    f"'{self.task}' is a named dataset with policies of its own; "
                    f"give --task {RECIPES[self.task].task} to choose them yourself."
                )
            recipe = RECIPES[self.task]
            return collect_recipe(recipe, steps=self.steps, seed=self.seed, processes=self.processes)
        if ":" not in self.task and not is_at_hand(self.task):
            raise UserError(f"Unknown task '{self.task}'{suggestion(self.task, [*task_names(), *RECIPES])}")
        if self.steps is None:
            raise UserError(f"Say how many transitions to collect from '{self.task}' with --steps N.")
        return collect(
            self.task,
            self.steps,
            self.policy or "uniform",
            mix=self.mix,
            deterministic=self.deterministic,
            seed=self.seed,
            processes=self.processes,
        )


@dataclass(frozen=True)
class Convert:
    """Write a dataset as .npz, or as HDF5 in D4RL's layout."""

    source: Positional[Source]
    """Any source that `mcetm data inspect` takes."""

    out: Positional[Annotated[Path, arg(metavar="FILE")]]
    """File to write (.npz or .hdf5)."""

    task: Name = None
    """Task the data belong to, where the source does not say."""

    time_limit: Number = None
    """Steps after which episodes were cut, for logs that do not mark it."""

    folder: Folder = None
    """Folder to look in for D4RL's files, besides $MCETM_DATA and the cache."""

    force: Flag = False
    """Replace an existing file."""

    columns: ColumnOptions = field(default_factory=ColumnOptions)

    def run(self) -> int:
        """Read and write."""
        from mcetm.data.files import write_file
        from mcetm.envs import load_dataset
        from mcetm.tasks.own import remember

        _check_out(self.out, replace=self.force)
        remember(self.task)
        transitions = load_dataset(
            self.source,
            folder=self.folder,
            infos=True,
            task=self.task,
            time_limit=self.time_limit,
            columns=self.columns.settings(self.source),
        )
        write_file(transitions, self.out)
        say(f"wrote {self.out}: {len(transitions):,} transitions, checksum {transitions.checksum[:16]}")
        return 0


@dataclass(frozen=True)
class Describe:
    """Propose what the columns of a table are, in a file beside it that every command then reads."""

    table: Positional[Annotated[Path, arg(metavar="TABLE")]]
    """A CSV or Parquet file; plant.csv is described in plant.mcetm.toml."""

    force: Flag = False
    """Replace an earlier description."""

    def run(self) -> int:
        """Look, write, show."""
        from mcetm.data.describe import write_description

        place, found = write_description(self.table, replace=self.force)
        say(found.toml(self.table.name).rstrip())
        say(f"\nwrote {place}; read it, and then: mcetm data inspect {self.table}")
        return 0


@dataclass(frozen=True)
class ListNames:
    """List the tasks and the datasets known by name, and which of them are at hand."""

    def run(self) -> int:
        """Print two tables."""
        from mcetm.console import output
        from mcetm.report.names import show_datasets, show_tasks

        console = output()
        show_tasks(console)
        show_datasets(console)
        return 0


@dataclass(frozen=True)
class Data:
    """Look at, describe, collect, convert and find datasets."""

    command: (
        Annotated[Inspect, subcommand("inspect")]
        | Annotated[Collect, subcommand("collect")]
        | Annotated[Convert, subcommand("convert")]
        | Annotated[Describe, subcommand("describe")]
        | Annotated[ListNames, subcommand("list")]
    )

    def run(self) -> int:
        """Run the chosen command."""
        return self.command.run()


def _check_out(path: Path, *, replace: bool) -> None:
    """Refuse a bad output before the work, not after it."""
    from mcetm.data.files import check_writable
    from mcetm.errors import UserError

    if check_writable(path) and not replace:
        raise UserError(f"{path} exists already; --force replaces it.")


def _print_json(content: object) -> None:
    import json

    print(json.dumps(content, indent=1, allow_nan=False))

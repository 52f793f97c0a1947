"""`load_run`: everything about a finished run, from its folder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import NoneType

from mcetm.agents.policy import Policy, load_policy, seed_folders
from mcetm.arguments import path_of, require
from mcetm.console import one_line
from mcetm.data.card import Card, make_card
from mcetm.data.transitions import Transitions
from mcetm.dynamics import World
from mcetm.errors import UserError
from mcetm.numbers import with_spread
from mcetm.pipeline.config import TrainConfig, read_config
from mcetm.pipeline.models import read_world
from mcetm.pipeline.results import Result, Results, read_card, read_module_file, read_results
from mcetm.pipeline.source import read_log, read_log_again
from mcetm.pipeline.train import train_run
from mcetm.tasks.datasets import source_name
from mcetm.tasks.own import task_in_file
from mcetm.tasks.registry import Task


@dataclass(frozen=True)
class LoadedRun:
    """A finished run. What takes time to read, the log and the world, is read when it is first asked for."""

    folder: Path
    settings: TrainConfig
    """Every setting, as `config.json` has them; `settings.algorithm` and `settings.model` fit again."""
    results: Results
    """The table: `results.algorithms` by name, with the return of each seed where returns were measured."""
    log_is_at: str | None = field(default=None, repr=False)
    """Where the log is now, if it has moved."""

    @property
    def result(self) -> Result | None:
        """What the run's own algorithm reached; None where there was no environment to measure it in."""
        return self.results.algorithms[self.results.own]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in the order of `policies`."""
        return tuple(self.results.seeds)

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """The policy of each seed; its `trust` reads the run's world when it is first asked for."""
        places = {int(place.name.removeprefix("seed-")): place for place in seed_folders(self.folder)}
        if missing := [seed for seed in self.seeds if seed not in places]:
            raise UserError(f"{self.folder} has no policy of seed {missing[0]}: its folder is not complete.")
        return tuple(replace(load_policy(places[seed]), find_world=lambda: self.world) for seed in self.seeds)

    @cached_property
    def card(self) -> Card:
        """What the log holds, and what about it should make its reader careful."""
        return read_card(self.folder) or make_card(self.log)

    @cached_property
    def task(self) -> Task | None:
        """Where returns were measured; a module of your own is imported only if you have named it."""
        about = self.policies[0].about
        name = self.settings.task or about.get("task")
        if name is None:
            return None
        file = self.folder / "config.json"
        return task_in_file(name, file, module_file=read_module_file(self.folder))

    @cached_property
    def log(self) -> Transitions:
        """The log that the run was begun with, known by its checksum."""
        return read_log_again(self.settings, self.folder, self.log_is_at)

    @cached_property
    def world(self) -> World | None:
        """The world that the policies were trained in; None for an algorithm that needs none."""
        if self.settings.model is None:
            return None
        train, holdout = self.log.split(self.settings.holdout, seed=self.settings.seed)
        return read_world(self.settings, train, holdout, self.task, folder=self.folder / "models")

    def __str__(self) -> str:
        found, seeds = self.result, len(self.seeds)
        reached = "not measured" if found is None else with_spread(found.returns)
        return (
            f"{one_line(self.results.own)} on {one_line(source_name(self.settings.dataset))}, "
            f"{seeds} seed{'s' if seeds > 1 else ''}: return {reached}"
        )


def train(config: TrainConfig, folder: str | Path, *, log: Transitions | None = None) -> LoadedRun:
    """Do all that `mcetm train` does: models, policies of all seeds, their evaluation and the report.

    **Arguments:**

    - `config`: what to do, such as `mcetm.preset("quick", dataset="pendulum-mixed")` returns.
    - `folder`: the run's folder. A run that was stopped there goes on, bit for bit; another one is refused.
    - `log`: the dataset, if it is at hand; by default it is read as the settings say.

    **Returns:** the finished run, as `load_run` reads it.
    """
    require("config", config, "a TrainConfig, such as mcetm.preset returns", TrainConfig)
    require("log", log, "a log (Transitions)", Transitions, NoneType)
    train_run(config, path_of("folder", folder), read_log(config) if log is None else log)
    return load_run(folder)


def load_run(folder: str | Path, *, dataset: str | Path | None = None) -> LoadedRun:
    """Read a finished run of `mcetm train`.

    **Arguments:**

    - `folder`: the run's folder.
    - `dataset`: where its log is now, if it has moved; another log is refused.

    **Returns:** the run's `card`, `world`, `policies` of all seeds, `settings` and `results`. Nothing is
    trained, and no code is imported that you have not named before.
    """
    folder = path_of("folder", folder)
    config = read_config(folder / "config.json")
    if not (folder / "results.json").is_file():
        raise UserError(f"{folder} is not finished; go on with: mcetm train --resume {folder}")
    return LoadedRun(folder, config, read_results(folder), None if dataset is None else str(dataset))

"""What a benchmark consists of: a TOML file of tables, and the cells that they need.

A table has logs in its rows and systems in its columns. A system is an algorithm with settings, trained in
one or several worlds; the seeds that share a world are one cell. The same cell may stand in several tables:
it is trained once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from mcetm import UserError
from mcetm.documents import Count, Finite, Label, Name, Record, Text, read_toml
from mcetm.pipeline import (
    Cell,
    ExecutorSettings,
    LocalSettings,
    Planned,
    Worlds,
    changed,
    check_reach,
    check_worlds,
    make_config,
    shared_name,
    usual_executor,
    with_steps,
)

PLANS = ("paper", "small")
"""Plans that are shipped, by the name of their file."""


class System(Record):
    """A column of a table."""

    algorithm: Name
    """A name that `--algo` takes."""
    label: Label | None = None
    """What the table calls it, where that is not what the algorithm is called."""
    model: Name | None = None
    """Another model than its usual one."""
    preset: Name | None = None
    """Another preset than the plan's."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """Updates, where not those of its table."""
    set: list[Name] = Field(default_factory=list)
    """Changes, each as `path.to.setting=value`."""
    at: Finite | None = None
    """Where it stands on the axis of a table that has one."""
    worlds: Worlds
    """Seeds, by the world they share; seeds of a world follow each other."""
    tuned: Text = ""
    """Where its settings come from, and how many were tried to find them."""

    @model_validator(mode="after")
    def _follow(self) -> System:
        check_worlds(self.worlds)
        return self


class Table(Record):
    """Logs in rows, systems in columns."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    """What `--only` calls it."""
    title: Text
    about: Text = ""
    """What to know before reading it."""
    logs: Annotated[list[Name], Field(min_length=1)]
    """Names of logs, or of groups of them."""
    share: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Share of each log's rows that is used: whole episodes, drawn at random."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """Updates, where not those of the preset."""
    axis: Text = ""
    """What its systems differ in, where that is a number: they are drawn along it."""
    published: bool = False
    """Put the plan's published numbers beside."""
    systems: Annotated[list[System], Field(min_length=1)]

    @model_validator(mode="after")
    def _placed(self) -> Table:
        if self.axis and any(system.at is None or system.label is None for system in self.systems):
            raise ValueError("has an axis, so every system needs a label and a place `at` on it")
        return self


class Published(Record):
    """Somebody's own table, to stand beside ours."""

    source: Text
    logs: Annotated[list[Name], Field(min_length=1)]
    scores: dict[Label, list[Finite]]
    """Normalised scores of each system, one for each of the logs."""

    @model_validator(mode="after")
    def _whole(self) -> Published:
        for label, scores in self.scores.items():
            if len(scores) != len(self.logs):
                raise ValueError(f"should have a score of {label} for each of {len(self.logs)} logs")
        return self

    def of(self, label: str, log: str) -> float | None:
        """The score of a system on a log, whatever version the log's name has."""
        row = {name: i for i, name in enumerate(self.logs)}.get(log.removesuffix("-v2"))
        scores = self.scores.get(label)
        return None if scores is None or row is None else scores[row]


class BenchmarkPlan(Record):
    """A whole benchmark."""

    title: Text
    preset: Name
    episodes: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Episodes of each seed's last policy."""
    worst_after: Count = 60_000
    """The worst evaluation is looked for after so many updates."""
    tries: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Episodes that a person who deploys a policy may try, at most."""
    groups: dict[Name, list[Name]] = Field(default_factory=dict)
    """Logs by the name of their group."""
    published: Published | None = None
    executor: ExecutorSettings = Field(default_factory=LocalSettings)
    """Where cells are trained, as in a sweep."""
    table: Annotated[list[Table], Field(min_length=1)]

    @field_validator("executor", mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        return usual_executor(given)

    @model_validator(mode="after")
    def _named_once(self) -> BenchmarkPlan:
        names = [table.name for table in self.table]
        if len(set(names)) != len(names):
            raise ValueError("should have every table's name once")
        return self

    def logs_of(self, table: Table) -> list[str]:
        """All logs of a table, groups of them written out."""
        return [log for name in table.logs for log in self.groups.get(name, [name])]

    def chosen(self, only: Sequence[str] = ()) -> list[Table]:
        """The tables of these names; all without any."""
        names = [table.name for table in self.table]
        for name in only:
            if name not in names:
                raise UserError(f"The plan has no table '{name}'; it has: {', '.join(names)}.")
        return [table for table in self.table if not only or table.name in only]


def read_plan(source: str) -> BenchmarkPlan:
    """A plan that is shipped, by its name, or somebody's own file."""
    if source in PLANS:
        folder = resources.files("mcetm_experiments.benchmark") / "plans"
        with resources.as_file(folder / f"{source}.toml") as path:
            return read_toml(path, BenchmarkPlan)
    if not Path(source).exists():
        raise UserError(f"There is no plan '{source}'; name a TOML file, or one of: {', '.join(PLANS)}.")
    return read_toml(Path(source), BenchmarkPlan)


def planned(plan: BenchmarkPlan, table: Table, *, official: bool = False) -> Iterator[Planned]:
    """The cells of a table; with `official`, D4RL's own files take the place of logs that stand for them."""
    owners: dict[str, System] = {}
    for system in table.systems:
        for log in plan.logs_of(table):
            for world in system.worlds:
                one = _planned(plan, table, f"{log}-v2" if official else log, system, world)
                # Under one name they would be taken for more seeds of one system.
                if owners.setdefault(one.label, system) is not system:
                    raise UserError(
                        f"The table '{table.name}' has two systems called {one.label}; give each a label."
                    )
                yield one


def _planned(plan: BenchmarkPlan, table: Table, log: str, system: System, world: Sequence[int]) -> Planned:
    check_reach(f"the table '{table.name}'", system.model, system.set)
    config = make_config(
        system.preset or plan.preset,
        dataset=log,
        algo=system.algorithm,
        model=system.model,
        seeds=len(world),
        seed=world[0],
    )
    config = replace(config, baselines=(), label=system.label or config.label)
    steps = system.steps or table.steps
    config = config if steps is None else with_steps(config, steps)
    cell = Cell(changed(config, system.set), log=shared_name(log, table.share), episodes=plan.episodes)
    return Planned(cell, log, config.label, table.share, system=config.label)

"""What a sweep consists of: a TOML file of logs and systems, a grid or a search, and where it runs."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from mcetm.documents import Count, Finite, Label, Name, Record, Text, checked, parse_toml, read_bytes
from mcetm.errors import UserError
from mcetm.estimates import EstimateSettings
from mcetm.pipeline.cell import Cell
from mcetm.pipeline.config import changed, put_all, with_steps
from mcetm.pipeline.presets import make_config
from mcetm.pipeline.sweep.executors import ExecutorSettings, usual_executor
from mcetm.pipeline.sweep.executors.settings import LocalSettings
from mcetm.pipeline.sweep.jobs import Planned, shared_name
from mcetm.settings import from_plain, to_plain
from mcetm.tasks.own import named_class

Worlds = Annotated[list[Annotated[list[Count], Field(min_length=1)]], Field(min_length=1)]
Value = bool | int | Finite | Text
Steps = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]
"""A whole number that is the same as a floating-point one."""
_LONGEST = 100
_MOST_SETTINGS = 10_000
"""Combinations of a grid: each is a training, and has a file of its own."""


def check_worlds(worlds: Worlds) -> None:
    """Refuse seeds that one program cannot train, or that are there twice."""
    for world in worlds:
        if world != list(range(world[0], world[0] + len(world))):
            raise ValueError(f"should have seeds that follow each other, not {world}")
    every = [seed for world in worlds for seed in world]
    if len(set(every)) != len(every):
        raise ValueError("should have every seed once")


class Range(Record):
    """Values that a search may try for a setting."""

    low: Whole | Finite | None = None
    high: Whole | Finite | None = None
    """Both are included. Two whole numbers allow whole numbers only."""
    log: bool = False
    """Draw the logarithm evenly, for what matters by factors."""
    choices: Annotated[list[Value], Field(min_length=1)] | None = None
    """These values instead."""

    @model_validator(mode="after")
    def _whole(self) -> Range:
        if (self.choices is None) == (self.low is None and self.high is None):
            raise ValueError("needs either low and high, or choices")
        if self.choices is None:
            if self.low is None or self.high is None or not self.low < self.high:
                raise ValueError("needs a low end below its high end")
            if self.log and self.low <= 0:
                raise ValueError("needs a low end above 0 for its logarithm")
        return self

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)


class System(Record):
    """An algorithm with its settings, of which some are varied."""

    algorithm: Name
    """A name that `--algo` takes."""
    label: Label | None = None
    """What tables call it, where that is not what the algorithm is called."""
    model: Name | None = None
    """Another model than its usual one."""
    preset: Name | None = None
    """Another preset than the sweep's."""
    steps: Steps | None = None
    """Updates, where not those of the sweep."""
    set: list[Name] = Field(default_factory=list)
    """Changes, each as `path.to.setting=value`."""
    grid: dict[Name, Annotated[list[Value], Field(min_length=1)]] = Field(default_factory=dict)
    """Values to try for settings, every combination of them."""
    over: dict[Name, Range] = Field(default_factory=dict)
    """Settings that are searched, and the values they may have."""

    @model_validator(mode="after")
    def _one_way(self) -> System:
        if self.grid and self.over:
            raise ValueError("has both a grid and settings to search; make two systems of it")
        if (count := math.prod(map(len, self.grid.values()))) > _MOST_SETTINGS:
            raise ValueError(f"has a grid of {count:,} settings; at most {_MOST_SETTINGS:,} are tried")
        return self


class Search(Record):
    """How settings are searched."""

    method: Literal["random", "optuna"] = "random"
    """`optuna` is a tree-structured Parzen estimator, which learns from what was found."""
    trials: Annotated[int, Field(ge=1, le=100_000)] = 16
    """Settings that are tried for each system on each log."""
    batch: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Settings that Optuna chooses at a time, each without knowing what came of the others."""
    seed: Count = 0


class SweepPlan(Record):
    """A whole sweep."""

    title: Text = "A sweep"
    preset: Name = "quick"
    logs: Annotated[list[Name], Field(min_length=1)]
    """Files, names from `mcetm data list`, or Minari ids."""
    task: Name | None = None
    """The environment to measure returns in. Naming it also makes returns what settings are chosen by."""
    seeds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Agents of each cell, all in one program and one world."""
    worlds: Worlds | None = None
    """Instead: seeds by the world they share; each world is a cell of its own."""
    steps: Steps | None = None
    """Updates, where not those of the preset."""
    set: list[Name] = Field(default_factory=list)
    """Changes for all systems, each as `path.to.setting=value`."""
    share: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Share of each log's rows that is used: whole episodes, drawn at random."""
    episodes: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Episodes of each last policy, where there is an environment."""
    objective: Literal["estimates", "returns"] | None = None
    """What settings are chosen by: offline estimates, unless an environment is named with `task`."""
    estimate: list[Name] = Field(default_factory=list)
    """Settings of the estimators, as `mcetm estimate --set` takes them."""
    search: Search = Field(default_factory=Search)
    systems: Annotated[list[System], Field(min_length=1)]
    executor: ExecutorSettings = Field(default_factory=LocalSettings)

    @field_validator("executor", mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        return usual_executor(given)

    @model_validator(mode="after")
    def _fits(self) -> SweepPlan:
        if self.seeds is not None and self.worlds is not None:
            raise ValueError("has seeds and worlds; one of them says what is trained")
        if self.worlds is not None:
            check_worlds(self.worlds)
        return self

    @property
    def chosen_by(self) -> Literal["estimates", "returns"]:
        """What settings are chosen by."""
        return self.objective or ("estimates" if self.task is None else "returns")

    @property
    def chooses(self) -> bool:
        """Whether there is anything to choose among."""
        return any(system.grid or system.over for system in self.systems)

    @property
    def estimation(self) -> EstimateSettings:
        """How returns are estimated."""
        return from_plain(EstimateSettings, put_all(to_plain(EstimateSettings()), self.estimate), "estimate")


@dataclass(frozen=True)
class Variant:
    """A system with one value for each of the settings that are varied."""

    system: System
    values: Mapping[str, Any]

    @property
    def changes(self) -> list[str]:
        """As `--set` takes them."""
        return [f"{path}={json.dumps(value)}" for path, value in self.values.items()]

    @property
    def words(self) -> str:
        """The values, by the shortest names that tell settings apart."""
        short = [path.rpartition(".")[2] for path in self.values]
        named = zip(short, self.values, self.values.values(), strict=True)
        parts = [f"{name if short.count(name) == 1 else path}={value}" for name, path, value in named]
        return " ".join(parts)


def read_sweep(path: Path, changes: Sequence[str] = ()) -> SweepPlan:
    """A plan from its file, with some of it changed; files it names are looked for where it was called."""
    if not path.exists():
        raise UserError(f"There is no file {path}; a sweep is a TOML file (docs/how-to/sweep.md).")
    content = {"executor": {}, "search": {}, **parse_toml(path, read_bytes(path, largest=2**22))}
    plan: SweepPlan = checked(path, put_all(content, changes), SweepPlan)
    _ = plan.estimation  # refused now, whether it will be needed or not
    return plan


def grid_of(system: System) -> list[Variant]:
    """Every combination of a grid; a system without one is itself."""
    return [
        Variant(system, dict(zip(system.grid, values, strict=True)))
        for values in itertools.product(*system.grid.values())
    ]


_PARTS = ("algorithm", "model", "world", "evaluation")
"""What of a run a plan's changes reach: logs, seeds and labels have fields of their own."""
_NAMES = ("algorithm.name", "model.name")


def check_reach(place: str, model: str | None, changes: Sequence[str]) -> None:
    """A plan may come from anybody: it imports nothing by itself, and changes parts of a run only."""
    if model is not None and ":" in model:
        named_class(model, place)
    for change in changes:
        path = change.partition("=")[0]
        if path.partition(".")[0] not in _PARTS or "." not in path or path in _NAMES:
            raise UserError(
                f"{place[:1].upper()}{place[1:]} sets {change!r:.80}; a plan sets parts of "
                f"{', '.join(_PARTS)} only, and has fields of its own for the rest."
            )


def planned_of(plan: SweepPlan, variants: Sequence[Variant], log: str) -> Iterator[Planned]:
    """The cells of some variants on a log."""
    for variant in variants:
        system = variant.system
        changes = [*plan.set, *system.set, *variant.changes]
        check_reach(f"the plan's system {system.label or system.algorithm}", system.model, changes)
        worlds: Sequence[Sequence[int]] = plan.worlds or [()]
        for world in worlds:
            config = make_config(
                system.preset or plan.preset,
                dataset=log,
                algo=system.algorithm,
                model=system.model,
                seeds=len(world) or plan.seeds,
                seed=world[0] if world else 0,
                task=plan.task,
            )
            called = system_label(system, config.label)
            steps = system.steps or plan.steps
            config = replace(config, baselines=(), label=label_of(called, variant.words))
            config = config if steps is None else with_steps(config, steps)
            config = changed(config, changes)
            by_estimates = plan.chosen_by == "estimates"
            cell = Cell(
                config,
                shared_name(log, plan.share),
                plan.episodes,
                plan.estimation if by_estimates and plan.chooses else None,
            )
            yield Planned(
                cell,
                log,
                config.label,
                plan.share,
                called,
                variant.values,
                plan.estimation if by_estimates else None,
            )


def system_label(system: System, usual: str) -> str:
    """What a system is called, whatever values are tried in it."""
    if system.label is not None:
        return system.label
    return usual if system.model is None else f"{usual} {system.model.replace(':', '-')}"


def label_of(system: str, words: str) -> str:
    """What a system with these values is called."""
    name = f"{system} {words}".strip()
    for sign in "/\\:":
        name = name.replace(sign, "-")
    return name[:_LONGEST]

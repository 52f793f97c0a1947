"""What a cell of a table has found: one small file, of which everything that is shown is made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from mcetm.documents import Checksum, Count, Finite, Label, Record, Text, read_json
from mcetm.evaluation.comparison import Curve, Entry
from mcetm.pipeline.results import Seconds
from mcetm.tasks.registry import ReferenceScores

FORMAT = 1


class Scale(Record):
    """The returns that are 0 and 100 on the normalised scale."""

    random: Finite
    expert: Finite
    origin: Text


class Estimated(Record):
    """What is estimated of one seed's policy, from the log alone."""

    value: Finite | None
    """None where no estimator had an answer."""
    interval: list[Finite] | None
    believed: bool
    verdict: Text
    """Why it is believed or not."""


class CellResult(Record):
    """What is known of a cell: all that its table, figures and page are made of."""

    format: Literal[1] = FORMAT
    key: Text
    """The hash of its settings, and of how it is measured."""
    log: Text
    """What tables call the data."""
    label: Label
    """What the table that it was first trained for calls the algorithm."""
    task: Text | None
    """None where returns could not be measured."""
    scale: Scale | None
    """None where the task has no reference returns."""
    data: Checksum
    data_return: Finite
    """Mean return of the data's own episodes."""
    rows: Count
    """Transitions of the data."""
    notes: list[Text]
    """What is to be known about the data, such as that they stand in for others."""
    seeds: Annotated[list[Count], Field(min_length=1)]
    world: Count
    """The seed of the world that all of them share."""
    updates: Count
    returns: list[Annotated[list[Finite], Field(min_length=1)]]
    """Of every episode of the last policy, by seed; empty where they were not measured."""
    lengths: list[list[Count]]
    """Steps of those episodes."""
    curve_steps: list[Count]
    curve: list[list[Finite]]
    """Mean returns while learning: a row for each of the steps, a column for each seed."""
    diagnosis: dict[Text, list[Finite]] | None
    estimates: list[Estimated] | None = None
    """Of each seed's policy, where they were asked for."""
    seconds: Seconds
    """By stage; those of the world begin with `world: `."""
    settings: dict[str, Any]
    environment: dict[str, Any]
    """Versions, hardware and the commit."""

    @model_validator(mode="after")
    def _fits(self) -> CellResult:
        seeds = len(self.seeds)
        measured = (self.returns, self.lengths) if self.task is not None else ()
        estimated = () if self.estimates is None else (self.estimates,)
        if any(len(rows) != seeds for rows in (*measured, *estimated, *self.curve)):
            raise ValueError(f"needs one row of every number for each of {seeds} seeds")
        if self.task is None and self.estimates is None:
            raise ValueError("has neither returns nor estimates")
        if len(self.curve) != len(self.curve_steps):
            raise ValueError("has a curve that is not as long as its steps")
        return self

    @property
    def means(self) -> np.ndarray:
        """Mean return of each seed's policy: measured where it can be, else as it is estimated."""
        if self.returns:
            return np.array([np.mean(episodes) for episodes in self.returns])
        values = [np.nan if one.value is None else one.value for one in self.estimates or ()]
        return np.array(values)

    @property
    def references(self) -> ReferenceScores | None:
        """What its returns are measured against."""
        return None if self.scale is None else ReferenceScores(**self.scale.model_dump())

    @property
    def entry(self) -> Entry:
        """As an entry of a comparison."""
        curve = Curve(np.array(self.curve_steps), np.array(self.curve)) if self.curve else None
        return Entry(
            seeds=tuple(self.seeds),
            returns=tuple(self.means.tolist()),
            updates=(self.updates,),
            curve=curve,
            worlds=(self.world,) * len(self.seeds),
        )


def read_cell(path: Path) -> CellResult:
    """The result in a file, checked."""
    return read_json(path, CellResult)


def read_cells(folder: Path) -> list[CellResult]:
    """All results of a folder, in the order of their names."""
    return [read_cell(path) for path in sorted((folder / "cells").glob("*.json"))]

"""Several algorithms on several datasets, side by side: what can be said of them, and with what care."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mcetm.evaluation.statistics import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    Profile,
    Strata,
    Worlds,
    bootstrap,
    mean,
    performance_profile,
    pooled,
    probability_of_improvement,
)
from mcetm.tasks.registry import ReferenceScores

FEW = 5
"""With fewer seeds the percentile interval is clearly too narrow (measured in docs/how-to/compare.md)."""


@dataclass(frozen=True)
class Dataset:
    """A dataset, and what its returns are measured against."""

    name: str
    data_return: float
    """Mean return of the data themselves."""
    task: str | None = None
    references: ReferenceScores | None = None


@dataclass(frozen=True)
class Curve:
    """Returns while learning: one row for each evaluation, one column for each seed."""

    updates: np.ndarray
    returns: np.ndarray


@dataclass(frozen=True)
class Entry:
    """What the seeds of one algorithm reached on one dataset."""

    seeds: tuple[int, ...]
    returns: tuple[float, ...]
    updates: tuple[int, ...] = ()
    """Numbers of updates trained; several where runs of different length were pooled, none if unknown."""
    curve: Curve | None = None
    folders: tuple[str, ...] = ()
    worlds: tuple[int, ...] = ()
    """For every seed, which world it learned in, where that is known; intervals then know of it."""

    def scores(self, values: np.ndarray) -> np.ndarray | Worlds:
        """Values of the seeds, as the bootstrap wants them."""
        return Worlds(values, np.array(self.worlds)) if len(set(self.worlds)) > 1 else values


def pool(parts: Sequence[Entry]) -> Entry:
    """Seeds of several trainings as one entry; it has a curve where all were evaluated together."""
    curve = None
    curves = [part.curve for part in parts if part.curve is not None]
    if len(curves) == len(parts):
        steps = curves[0].updates
        for other in curves[1:]:
            steps = np.intersect1d(steps, other.updates)
        if len(steps):
            columns = [other.returns[np.isin(other.updates, steps)] for other in curves]
            curve = Curve(steps, np.concatenate(columns, axis=1))
    return Entry(
        seeds=tuple(seed for part in parts for seed in part.seeds),
        returns=tuple(value for part in parts for value in part.returns),
        updates=tuple(sorted({count for part in parts for count in part.updates})),
        curve=curve,
        folders=tuple(folder for part in parts for folder in part.folders),
        worlds=tuple(world for part in parts for world in part.worlds)
        if all(p.worlds for p in parts)
        else (),
    )


@dataclass(frozen=True)
class Summary:
    """Mean, spread and interquartile mean of some runs."""

    runs: int
    mean: Interval
    std: float | None
    """Spread over seeds; None for one seed, and over several datasets, whose levels it would measure."""
    iqm: Interval

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "runs": self.runs,
            "mean": self.mean.to_dict(),
            "std": self.std,
            "iqm": self.iqm.to_dict(),
        }


@dataclass(frozen=True)
class Comparison:
    """The whole comparison; `measure` says what its numbers are."""

    measure: Literal["score", "return"]
    datasets: tuple[Dataset, ...]
    algorithms: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]
    """By algorithm and dataset."""
    summaries: Mapping[tuple[str, str], Summary]
    common: tuple[str, ...]
    """Datasets that every algorithm has; aggregates are over these."""
    aggregates: Mapping[str, Summary] | None
    """None where there is nothing common, or returns of several datasets cannot be averaged."""
    improvements: Mapping[tuple[str, str], Interval]
    """Probability that the first beats the second; both orders of every pair."""
    profiles: Mapping[str, Profile] | None
    notes: tuple[str, ...]

    def convert(self, dataset: Dataset, returns: Any) -> Any:
        """Returns on a dataset, as numbers or an array, in what this comparison measures in."""
        return _measured(dataset, returns, self.measure)

    def updates_of(self, algorithm: str) -> tuple[int, ...]:
        """Every number of updates that the algorithm was trained for."""
        counts = {u for (name, _), entry in self.entries.items() if name == algorithm for u in entry.updates}
        return tuple(sorted(counts))

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for programs."""
        datasets = {dataset.name: dataset for dataset in self.datasets}
        algorithms: dict[str, Any] = {}
        for name in self.algorithms:
            found = {}
            for (_, dataset), entry in (
                (key, entry) for key, entry in self.entries.items() if key[0] == name
            ):
                values = self.convert(datasets[dataset], np.array(entry.returns, float)).tolist()
                found[dataset] = {
                    "seeds": list(entry.seeds),
                    "returns": list(entry.returns),
                    "scores": values if self.measure == "score" else None,
                    "updates": list(entry.updates),
                    "folders": list(entry.folders),
                    **self.summaries[name, dataset].to_dict(),
                }
            algorithms[name] = {
                "datasets": found,
                "aggregate": None if self.aggregates is None else self.aggregates[name].to_dict(),
                "improves_on": {
                    other: value.to_dict() for (own, other), value in self.improvements.items() if own == name
                },
                "profile": None if self.profiles is None else _plain_profile(self.profiles[name]),
            }
        return {
            "measure": self.measure,
            "confidence": CONFIDENCE,
            "resamples": RESAMPLES,
            "datasets": {
                dataset.name: {
                    "task": dataset.task,
                    "data_return": dataset.data_return,
                    "data_score": None
                    if dataset.references is None
                    else float(dataset.references.normalize(dataset.data_return)),
                }
                for dataset in self.datasets
            },
            "aggregated_over": list(self.common),
            "algorithms": algorithms,
            "notes": list(self.notes),
        }


def compare(
    datasets: Sequence[Dataset], entries: Mapping[tuple[str, str], Entry], notes: Sequence[str] = ()
) -> Comparison:
    """All numbers of a comparison; `entries` are by algorithm and dataset, `notes` are put before our own."""
    algorithms = tuple(dict.fromkeys(name for name, _ in entries))
    without = [dataset.name for dataset in datasets if dataset.references is None]
    measure: Literal["score", "return"] = "return" if without else "score"
    strata = {
        (name, dataset.name): entries[name, dataset.name].scores(
            _measured(dataset, np.array(entries[name, dataset.name].returns, float), measure)
        )
        for name in algorithms
        for dataset in datasets
        if (name, dataset.name) in entries
    }
    common = tuple(d.name for d in datasets if all((name, d.name) in entries for name in algorithms))
    by_algorithm = {name: [strata[name, dataset] for dataset in common] for name in algorithms}
    averaged = bool(common) and (measure == "score" or len(common) == 1)
    improvements: dict[tuple[str, str], Interval] = {}
    for i, first in enumerate(algorithms if common else ()):
        for second in algorithms[i + 1 :]:
            found = probability_of_improvement(by_algorithm[first], by_algorithm[second])
            improvements[first, second] = found
            improvements[second, first] = _opposite(found)
    return Comparison(
        measure=measure,
        datasets=tuple(datasets),
        algorithms=algorithms,
        entries=dict(entries),
        summaries={key: _summary([scores]) for key, scores in strata.items()},
        common=common,
        aggregates={name: _summary(found) for name, found in by_algorithm.items()} if averaged else None,
        improvements=improvements,
        profiles=_profiles(by_algorithm) if averaged else None,
        notes=(*notes, *_notes(algorithms, datasets, entries, common, without)),
    )


def _measured(dataset: Dataset, returns: Any, measure: str) -> Any:
    if measure == "return" or dataset.references is None:
        return returns
    return dataset.references.normalize(returns)


def _summary(strata: Strata) -> Summary:
    one = pooled(strata) if len(strata) == 1 else None
    return Summary(
        runs=len(pooled(strata)),
        mean=bootstrap(strata, mean),
        std=float(np.std(one, ddof=1)) if one is not None and len(one) > 1 else None,
        iqm=bootstrap(strata),
    )


def _profiles(by_algorithm: Mapping[str, Strata]) -> dict[str, Profile]:
    every = np.concatenate([pooled(strata) for strata in by_algorithm.values()])
    low, high = every.min(), every.max()
    room = 0.02 * (high - low) or 1.0
    thresholds = np.linspace(low - room, high + room, 201)
    return {name: performance_profile(strata, thresholds) for name, strata in by_algorithm.items()}


def _opposite(found: Interval) -> Interval:
    if found.low is None or found.high is None:
        return Interval(1 - found.value)
    return Interval(1 - found.value, 1 - found.high, 1 - found.low)


def _notes(
    algorithms: Sequence[str],
    datasets: Sequence[Dataset],
    entries: Mapping[tuple[str, str], Entry],
    common: Sequence[str],
    without: Sequence[str],
) -> list[str]:
    """What a reader must know before believing the numbers."""
    notes = []
    if without:
        notes.append(f"Numbers are raw returns: no reference scores are known for {', '.join(without)}.")
    lacking = {
        name: [dataset.name for dataset in datasets if (name, dataset.name) not in entries]
        for name in algorithms
    }
    if any(lacking.values()):
        who = "; ".join(f"{name} lacks {', '.join(lost)}" for name, lost in lacking.items() if lost)
        if common:
            notes.append(f"Aggregates are over what all algorithms have, {', '.join(common)}: {who}.")
        else:
            notes.append(f"No dataset has results of every algorithm, so there are no aggregates: {who}.")
    if without and len(common) > 1:
        notes.append(
            "Returns of different datasets cannot be averaged, so there is no mean, interquartile mean or "
            "profile over them; probabilities of improvement compare within each dataset and hold."
        )
    single = [f"{name} on {dataset}" for (name, dataset), entry in entries.items() if len(entry.seeds) == 1]
    if single:
        notes.append(f"One seed allows no interval: {', '.join(single)}.")
    counts = [len(entry.seeds) for entry in entries.values()]
    few = [count for count in counts if 1 < count < FEW]
    if few:
        words = "are only" if len(few) == len(counts) else "are in places only"
        most = f"{min(few)}" if min(few) == max(few) else f"{min(few)} to {max(few)}"
        notes.append(
            f"There {words} {most} seeds: 95 % intervals are then too narrow; five or more are better."
        )
    if any(len({len(entries[name, d].seeds) for d in common}) > 1 for name in algorithms):
        notes.append(
            "Numbers of seeds differ between datasets, and those with more weigh more in aggregates."
        )
    if len({entry.updates for entry in entries.values() if entry.updates}) > 1:
        notes.append("Numbers of updates differ.")
    return notes


def _plain_profile(profile: Profile) -> dict[str, Any]:
    return {
        "thresholds": profile.thresholds.tolist(),
        "share": profile.share.tolist(),
        "low": None if profile.low is None else profile.low.tolist(),
        "high": None if profile.high is None else profile.high.tolist(),
    }

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
    bootstrap,
    mean,
    performance_profile,
    probability_of_improvement,
)
from mcetm.tasks.registry import ReferenceScores

FEW = 5
"""With fewer seeds the percentile interval is clearly too narrow (docs/compare.md has measurements)."""


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
class Cell:
    """What the seeds of one algorithm reached on one dataset."""

    seeds: tuple[int, ...]
    returns: tuple[float, ...]
    updates: tuple[int, ...] = ()
    """Numbers of updates trained; several where runs of different length were pooled, none if unknown."""
    curve: Curve | None = None
    folders: tuple[str, ...] = ()


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
    cells: Mapping[tuple[str, str], Cell]
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
        counts = {u for (name, _), cell in self.cells.items() if name == algorithm for u in cell.updates}
        return tuple(sorted(counts))

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for programs."""
        datasets = {dataset.name: dataset for dataset in self.datasets}
        algorithms: dict[str, Any] = {}
        for name in self.algorithms:
            found = {}
            for (_, dataset), cell in ((key, cell) for key, cell in self.cells.items() if key[0] == name):
                values = self.convert(datasets[dataset], np.array(cell.returns, float)).tolist()
                found[dataset] = {
                    "seeds": list(cell.seeds),
                    "returns": list(cell.returns),
                    "scores": values if self.measure == "score" else None,
                    "updates": list(cell.updates),
                    "folders": list(cell.folders),
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
    datasets: Sequence[Dataset], cells: Mapping[tuple[str, str], Cell], notes: Sequence[str] = ()
) -> Comparison:
    """All numbers of a comparison; `cells` are by algorithm and dataset, `notes` are put before our own."""
    algorithms = tuple(dict.fromkeys(name for name, _ in cells))
    without = [dataset.name for dataset in datasets if dataset.references is None]
    measure: Literal["score", "return"] = "return" if without else "score"
    strata = {
        (name, dataset.name): _measured(dataset, np.array(cells[name, dataset.name].returns, float), measure)
        for name in algorithms
        for dataset in datasets
        if (name, dataset.name) in cells
    }
    common = tuple(d.name for d in datasets if all((name, d.name) in cells for name in algorithms))
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
        cells=dict(cells),
        summaries={key: _summary([scores]) for key, scores in strata.items()},
        common=common,
        aggregates={name: _summary(found) for name, found in by_algorithm.items()} if averaged else None,
        improvements=improvements,
        profiles=_profiles(by_algorithm) if averaged else None,
        notes=(*notes, *_notes(algorithms, datasets, cells, common, without)),
    )


def _measured(dataset: Dataset, returns: Any, measure: str) -> Any:
    if measure == "return" or dataset.references is None:
        return returns
    return dataset.references.normalize(returns)


def _summary(strata: list[np.ndarray]) -> Summary:
    one = strata[0] if len(strata) == 1 else None
    return Summary(
        runs=sum(len(scores) for scores in strata),
        mean=bootstrap(strata, mean),
        std=float(np.std(one, ddof=1)) if one is not None and len(one) > 1 else None,
        iqm=bootstrap(strata),
    )


def _profiles(by_algorithm: dict[str, list[np.ndarray]]) -> dict[str, Profile]:
    pooled = np.concatenate([scores for strata in by_algorithm.values() for scores in strata])
    low, high = pooled.min(), pooled.max()
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
    cells: Mapping[tuple[str, str], Cell],
    common: Sequence[str],
    without: Sequence[str],
) -> list[str]:
    """What a reader must know before believing the numbers."""
    notes = []
    if without:
        notes.append(f"Numbers are raw returns: no reference scores are known for {', '.join(without)}.")
    lacking = {
        name: [dataset.name for dataset in datasets if (name, dataset.name) not in cells]
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
    single = [f"{name} on {dataset}" for (name, dataset), cell in cells.items() if len(cell.seeds) == 1]
    if single:
        notes.append(f"One seed allows no interval: {', '.join(single)}.")
    counts = [len(cell.seeds) for cell in cells.values()]
    few = [count for count in counts if 1 < count < FEW]
    if few:
        words = "are only" if len(few) == len(counts) else "are in places only"
        most = f"{min(few)}" if min(few) == max(few) else f"{min(few)} to {max(few)}"
        notes.append(
            f"There {words} {most} seeds: 95 % intervals are then too narrow; five or more are better."
        )
    if any(len({len(cells[name, d].seeds) for d in common}) > 1 for name in algorithms):
        notes.append(
            "Numbers of seeds differ between datasets, and those with more weigh more in aggregates."
        )
    if len({cell.updates for cell in cells.values() if cell.updates}) > 1:
        notes.append("Numbers of updates differ.")
    return notes


def _plain_profile(profile: Profile) -> dict[str, Any]:
    return {
        "thresholds": profile.thresholds.tolist(),
        "share": profile.share.tolist(),
        "low": None if profile.low is None else profile.low.tolist(),
        "high": None if profile.high is None else profile.high.tolist(),
    }

"""The tables of a plan, filled from the files of cells; what was not run stays blank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcetm import UserError
from mcetm.evaluation import Comparison, bandit_curve, expected_best
from mcetm.pipeline import CellResult, Planned, compare_cells
from mcetm_experiments.benchmark.plan import BenchmarkPlan, Table, planned


@dataclass(frozen=True)
class Filled:
    """A table with all that is known of it."""

    table: Table
    labels: tuple[str, ...]
    """Its columns, whether there is anything in them or not."""
    logs: tuple[str, ...]
    """Its rows."""
    results: Mapping[tuple[str, str], tuple[CellResult, ...]]
    """By label and log: one for each world."""
    missing: tuple[Planned, ...]
    comparison: Comparison | None
    """None where nothing was run yet."""

    @property
    def places(self) -> dict[str, float]:
        """Where each system stands on the table's axis."""
        return {system.label or "": system.at for system in self.table.systems if system.at is not None}

    def worst(self, after: int) -> dict[tuple[str, str], float]:
        """The mean over seeds of the worst evaluation after so many updates, by label and log."""
        found = {}
        if (comparison := self.comparison) is None:
            return {}
        datasets = {dataset.name: dataset for dataset in comparison.datasets}
        for (label, log), entry in comparison.entries.items():
            if entry.curve is not None and (late := entry.curve.updates >= after).any():
                worst = entry.curve.returns[late].min(axis=0).mean()
                found[label, log] = float(comparison.convert(datasets[log], worst))
        return found

    def bandits(self, tries: int) -> dict[str, np.ndarray]:
        """What is deployed after so many episodes, mean over the logs that all systems have."""
        return self._over_logs(lambda episodes: bandit_curve(episodes, tries))

    def best_of(self) -> dict[str, np.ndarray]:
        """The best of so many policies, mean over the logs that all systems have."""
        return self._over_logs(lambda episodes: expected_best(np.array([np.mean(e) for e in episodes])))

    def seconds(self) -> dict[str, float]:
        """What one cell of a system took, with its world: the median over cells."""
        taken: dict[str, list[float]] = {}
        for (label, _), found in self.results.items():
            taken.setdefault(label, []).extend(sum(result.seconds.values()) for result in found)
        return {label: float(np.median(values)) for label, values in taken.items()}

    def _over_logs(self, curve: Callable[[list[np.ndarray]], np.ndarray]) -> dict[str, np.ndarray]:
        comparison = self.comparison
        if comparison is None or comparison.aggregates is None:
            return {}
        datasets = {dataset.name: dataset for dataset in comparison.datasets}
        found = {}
        for label in comparison.algorithms:
            curves = []
            for log in comparison.common:
                episodes = [e for result in self.results[label, log] for e in result.returns]
                curves.append(curve([comparison.convert(datasets[log], np.array(e)) for e in episodes]))
            shortest = min(len(c) for c in curves)
            found[label] = np.mean([c[:shortest] for c in curves], axis=0)
        return found


def fill(
    plan: BenchmarkPlan, table: Table, results: Sequence[CellResult], *, official: bool = False
) -> Filled:
    """A table with its cells, as far as their files are there."""
    by_key = _by_key(results)
    found: dict[tuple[str, str], list[CellResult]] = {}
    every = list(planned(plan, table, official=official))
    missing = []
    for one in every:
        result = by_key.get((one.cell.key, one.cell.log))
        if result is None:
            missing.append(one)
        else:
            found.setdefault((one.label, one.cell.log), []).append(result)
    labels = tuple(dict.fromkeys(one.label for one in every))
    logs = tuple(dict.fromkeys(one.cell.log for one in every))
    return Filled(
        table,
        labels,
        logs,
        {key: tuple(cells) for key, cells in found.items()},
        tuple(missing),
        compare_cells(labels, logs, found),
    )


def _by_key(results: Sequence[CellResult]) -> dict[tuple[str, str], CellResult]:
    first: dict[str, CellResult] = {}
    for result in results:
        other = first.setdefault(result.log, result)
        if other.data != result.data:
            raise UserError(
                f"There are results on two different logs called {result.log} (checksums {other.data[:12]} "
                f"and {result.data[:12]}); take those on one of them away."
            )
    return {(result.key, result.log): result for result in results}

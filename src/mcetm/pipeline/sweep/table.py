"""The cells of a list side by side: one comparison, made of their files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mcetm.evaluation.comparison import Comparison, Dataset, Entry, compare, pool
from mcetm.pipeline.cell_result import CellResult

Found = Mapping[tuple[str, str], Sequence[CellResult]]
"""Results by label and log: one for each world."""


def compare_cells(labels: Sequence[str], logs: Sequence[str], found: Found) -> Comparison | None:
    """Labels in columns and logs in rows, in this order; None where nothing was found yet."""
    datasets, entries = [], dict[tuple[str, str], Entry]()
    notes: list[str] = []
    for log in logs:
        here = [result for label in labels for result in found.get((label, log), ())]
        if here:
            one = here[0]
            datasets.append(Dataset(log, one.data_return, one.task, one.references))
    # By label first: this is the order of the columns.
    for label in labels:
        for log in logs:
            results = found.get((label, log), ())
            if results and all(np.isfinite(result.means).all() for result in results):
                entries[label, log] = pool([result.entry for result in results])
            elif results:
                notes.append(f"{label} on {log} has no number: no estimator had an answer.")
    for log in logs:
        notes += _estimated(log, [r for label in labels for r in found.get((label, log), ())])
    measured = [dataset for dataset in datasets if any(name == dataset.name for _, name in entries)]
    return compare(measured, entries, notes) if entries else None


def _estimated(log: str, results: Sequence[CellResult]) -> list[str]:
    """That the numbers of a log are estimates, and how many of them can be believed."""
    found = [one for result in results if not result.returns for one in result.estimates or ()]
    if not found:
        return []
    believed = sum(one.believed for one in found)
    return [f"On {log} returns are estimates, not measured; {believed} of {len(found)} can be believed."]

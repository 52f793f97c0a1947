"""What settings are chosen by, and how much was tried to find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mcetm.pipeline.cell_result import CellResult
from mcetm.pipeline.sweep.jobs import Job

_MOST = 0.5
"""Settings are believed where more of their seeds' estimates are than this."""


@dataclass(frozen=True)
class Score:
    """What settings are worth, as far as is known."""

    value: float | None
    """Mean over seeds; None where no estimator had an answer for one of them."""
    believed: float
    """Share of seeds whose number can be believed; what was measured is."""


def score_of(results: Sequence[CellResult], by: Literal["estimates", "returns"]) -> Score | None:
    """Of the cells of some settings on one log; None where there are none."""
    if not results:
        return None
    estimated = [one for result in results for one in result.estimates or ()]
    if by == "returns" or not estimated:
        return Score(float(np.mean(np.concatenate([result.means for result in results]))), 1.0)
    values = [one.value for one in estimated if one.value is not None]
    believed = float(np.mean([one.believed for one in estimated]))
    return Score(float(np.mean(values)) if len(values) == len(estimated) else None, believed)


@dataclass(frozen=True)
class Chosen:
    """Which settings of a system are chosen on a log, and among how many."""

    system: str
    log: str
    by: str
    label: str | None
    """None where no estimate can be believed."""
    values: dict[str, Any]
    score: Score | None
    settings: int
    """How many settings have a result."""
    policies: int
    """How many policies these are."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "system": self.system,
            "log": self.log,
            "chosen_by": self.by,
            "label": self.label,
            "values": self.values,
            "value": None if self.score is None else self.score.value,
            "settings_tried": self.settings,
            "policies_tried": self.policies,
        }

    def __str__(self) -> str:
        tried = f"{self.settings} settings, {self.policies} policies tried"
        if self.label is None:
            return f"{self.system} on {self.log}: no estimate can be believed, so none is chosen; {tried}."
        number = "" if self.score is None or self.score.value is None else f" ({self.score.value:,.4g})"
        return f"{self.system} on {self.log}: {self.label}{number}, by {self.by}; {tried}."


def choices(
    jobs: Sequence[Job], found: dict[str, CellResult], by: Literal["estimates", "returns"]
) -> list[Chosen]:
    """What is chosen of every system with several settings, on each log."""
    groups: dict[tuple[str, str], dict[str, list[Job]]] = {}
    for job in jobs:
        if job.values:
            groups.setdefault((job.system, job.log), {}).setdefault(job.label, []).append(job)
    chosen = []
    for (system, log), labels in groups.items():
        scores: dict[str, Score] = {}
        policies = 0
        for label, own in labels.items():
            results = [found[job.name] for job in own if job.name in found]
            policies += sum(len(result.seeds) for result in results)
            # Half of the seeds of settings are no match for all those of others.
            if len(results) == len(own) and (score := score_of(results, by)) is not None:
                scores[label] = score
        believed = {
            label: score
            for label, score in scores.items()
            if score.believed > _MOST and score.value is not None
        }
        best = max(believed, key=lambda label: believed[label].value or 0.0, default=None)
        values = labels[best][0].values if best is not None else {}
        score = None if best is None else believed[best]
        chosen.append(Chosen(system, log, by, best, values, score, len(scores), policies))
    return chosen

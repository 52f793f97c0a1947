"""What a report shows and no other file of a run has, kept as `report.json`, so that it can be made anew."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mcetm.agents.inside import Inside
from mcetm.agents.regions import Regions
from mcetm.data.histogram import histogram
from mcetm.documents import read_json
from mcetm.dynamics.accuracy import Accuracy
from mcetm.files import write_json

_NAME = "report.json"
_BINS = 60


@dataclass(frozen=True)
class EnergyCounts:
    """The energies that one member's samples reach on held-out data, and its threshold."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    threshold: float

    @classmethod
    def of(cls, energies: np.ndarray, thresholds: np.ndarray) -> tuple[EnergyCounts, ...]:
        """Of each member."""
        found = []
        for values, threshold in zip(energies, thresholds, strict=True):
            counts, edges = histogram(np.asarray(values, float)[np.isfinite(values)], _BINS)
            found.append(cls(tuple(edges.tolist()), tuple(counts.tolist()), float(threshold)))
        return tuple(found)


@dataclass(frozen=True)
class Findings:
    """Of a run's own algorithm; where the algorithm learned in no world there is nothing."""

    inside: tuple[Inside, ...] = ()
    """How much of the held-out episodes each policy is trusted on."""
    regions: Regions | None = None
    energies: tuple[EnergyCounts, ...] = ()
    accuracy: Accuracy | None = None
    """Of the run's model on held-out episodes."""

    def save(self, folder: Path) -> None:
        """Write it into a run's folder."""
        write_json(folder / _NAME, asdict(self))


def read_findings(folder: Path) -> Findings | None:
    """What a run found; runs of earlier versions did not keep it."""
    path = folder / _NAME
    return read_json(path, Findings) if path.exists() else None

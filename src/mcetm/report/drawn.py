"""Pictures of a run that nobody needs to zoom: energies of its model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcetm.report.figures import figure
from mcetm.report.findings import EnergyCounts


def draw_energies(path: Path, members: Sequence[EnergyCounts]) -> None:
    """Histograms by member, with the threshold of each."""
    with figure(path, width=7.0, height=2.8) as drawn:  # powers on its axis are formulas; it has no names
        axes = np.atleast_1d(drawn.subplots(1, len(members), sharey=True))
        for i, (axis, member) in enumerate(zip(axes, members, strict=True)):
            axis.stairs(member.counts, member.edges, fill=True, color="#56B4E9")
            axis.set_yscale("log")
            axis.axvline(member.threshold, color="#D55E00", linestyle="--", label="δ")
            axis.set(xlabel="energy E", title=f"member {i}")
        axes[0].set(ylabel="held-out samples")
        axes[0].legend()

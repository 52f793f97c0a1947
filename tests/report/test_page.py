"""Figures of a run's page, as they can be read."""

from pathlib import Path

import numpy as np

from mcetm.report.drawn import draw_energies
from mcetm.report.findings import EnergyCounts


def test_powers_on_an_axis_are_drawn_and_not_spelled_out(tmp_path: Path) -> None:
    energies = np.random.default_rng(0).normal(size=(2, 5000))
    draw_energies(tmp_path / "energies", EnergyCounts.of(energies, np.ones(2)))
    assert ">$" not in (tmp_path / "energies.svg").read_text()

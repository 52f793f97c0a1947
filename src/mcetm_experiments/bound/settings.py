"""The settings of `mcetm study bound`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mcetm.settings import Positive, Seed, settings
from mcetm_experiments.shared.settings import Folder


@settings
class BoundStudy:
    """Random finite MDPs: how often the paper's theory is true, how tight its bound is, who returns most."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 20 MDPs of each family for each amount of data; full: 100."""

    mdps: Positive | None = None
    """As many MDPs instead."""

    out: Folder = Path("studies/bound")
    """Where results.json and the figures go."""

    seed: Seed = 0
    """Of the MDPs and their data."""

    def run(self) -> int:
        """Measure, write, print."""
        from mcetm.console import output
        from mcetm_experiments.bound.figures import FIGURES, show_bound
        from mcetm_experiments.bound.study import run_bound

        results = run_bound(self)
        show_bound(results, output())
        drawn = ", ".join(f"{name}.png" for name in FIGURES)
        print(f"wrote {self.out / 'results.json'} and {drawn} (and .svg) beside it")
        return 0

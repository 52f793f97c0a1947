"""The settings of `mcetm study didactic`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mcetm.settings import Positive, Seed, settings
from mcetm_experiments.shared.settings import Folder, say_written


@settings
class DidacticStudy:
    """The discontinuous function of the paper's section 5.1: every model beside the ground truth."""

    preset: Literal["quick", "paper"] = "quick"
    """quick: minutes on two cores; paper: full size, for a GPU."""

    transitions: Positive | None = None
    """Rows of the log: 100,000 by default, as in the paper's appendix; its text says 10000."""

    seeds: Positive | None = None
    """Independent trainings of every model; 5 by default."""

    out: Folder = Path("studies/didactic")
    """Where results.json and the figures go."""

    seed: Seed = 0
    """Seed of the log and of the trainings."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm_experiments.didactic.figures import show_didactic
        from mcetm_experiments.didactic.study import run_didactic

        results = run_didactic(self)
        show_didactic(results, output())
        say_written(self.out, "didactic", "didactic-errors")
        return 0

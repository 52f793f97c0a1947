"""The settings of `mcetm study landscape`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mcetm.settings import Positive, Seed, settings
from mcetm_experiments.shared.settings import Folder, say_written


@settings
class LandscapeStudy:
    """The same function embedded in many dimensions: how steeply energies rise off the manifold."""

    preset: Literal["quick", "paper"] = "quick"
    """quick: minutes on two cores; paper: full size, for a GPU."""

    state_dim: Positive = 20
    """Dimensions that a state is embedded in."""

    action_dim: Positive = 10
    """Dimensions that an action is embedded in."""

    chain: Positive | None = None
    """Langevin steps behind a negative in training: 50 in the paper and in preset `paper`, 4 in `quick`."""

    seeds: Positive | None = None
    """Independent trainings of every model: 3 in preset `quick`, 5 in `paper`."""

    out: Folder = Path("studies/landscape")
    """Where results.json and the figures go."""

    seed: Seed = 0
    """Seed of the embedding, the log and the trainings."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm_experiments.landscape.figures import show_landscape
        from mcetm_experiments.landscape.study import run_landscape

        results = run_landscape(self)
        show_landscape(results, output())
        say_written(self.out, "landscape", "landscape-numbers")
        return 0

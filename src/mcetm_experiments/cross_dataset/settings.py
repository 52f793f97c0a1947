"""The settings of `mcetm study cross-dataset`."""

from __future__ import annotations

from pathlib import Path

from mcetm.settings import Seed, settings
from mcetm_experiments.shared.settings import (
    Folder,
    KeptFolder,
    Levels,
    Models,
    Preset,
    Source,
    Tasks,
    say_written,
)


@settings
class CrossDatasetStudy:
    """One-step errors of every model on every level of a locomotion task, beside the paper's 48 rows."""

    preset: Preset = "quick"
    """quick: minutes on two cores; fast: full sizes, for a GPU; paper: the paper's training lengths."""

    tasks: Tasks = ()
    """What to run now: by default hopper in preset `quick`, all three in the others."""

    levels: Levels = ()
    """What to train on now: by default random and medium in preset `quick`, all four in the others."""

    models: Models = ()
    """What to train now; all by default. `plain` and `anchored` are MC-ETM as in `mcetm train`'s presets
    `paper` and `fast`."""

    source: Source = "collected"
    """Our own collection of the levels, or D4RL's files."""

    out: Folder = Path("studies/cross-dataset")
    """Where results.json and the figures go; what earlier runs left there is shown too."""

    trained: KeptFolder = None
    """Keep trainings here and go on where they were stopped; for one run at a time."""

    seed: Seed = 0
    """Seed of the splits and of the trainings."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm_experiments.cross_dataset.figures import show_cross_dataset
        from mcetm_experiments.cross_dataset.study import run_cross_dataset

        results = run_cross_dataset(self)
        show_cross_dataset(results, output())
        curves = ["cross-dataset-curves"] if results["chains"] and results["shares"] else []
        say_written(self.out, "cross-dataset", *curves)
        return 0

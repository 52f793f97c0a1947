"""The settings of `mcetm study energy-error`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from mcetm.settings import Positive, Seed, settings
from mcetm_experiments.shared.settings import Folder, KeptFolder, Level, Preset, Tasks, say_written

EnergyKind = Literal["anchored", "plain", "literal"]


@settings
class EnergyErrorStudy:
    """Scores of distrust against true errors, on held-out data and ever further off them."""

    preset: Preset = "quick"
    """quick: hopper, minutes on two cores; fast: models of `mcetm train`, for a GPU; paper: the paper's."""

    tasks: Tasks = ()
    """Tasks; by default hopper in preset `quick`, all three in the others."""

    level: Level = "medium"
    """Level of the data that the models are trained on; the others are off it."""

    energy: EnergyKind | None = None
    """The energy: `anchored` by default, `plain`, the paper's with EMPO's meaning, in preset `paper`;
    `literal` is the paper's to the letter."""

    members: Positive | None = None
    """Energies in the ensemble, fewer for less time: 3 in preset `quick`, 5 in the others."""

    run_folder: Annotated[Path | None, arg(name="run", metavar="RUN", help_behavior_hint="")] = None
    """Look at a finished run: its models, critic and policy instead of fresh ones."""

    seeds: Positive | None = None
    """Independent trainings: 2 in preset `quick`, 3 in the others."""

    out: Folder = Path("studies/energy-error")
    """Where results.json, tables.md and the figures go."""

    trained: KeptFolder = None
    """Keep trainings here and go on where they were stopped; for one run at a time."""

    seed: Seed = 0
    """The first of the seeds."""

    def run(self) -> int:
        """Train, look, write, print."""
        from mcetm.console import output
        from mcetm_experiments.energy_error.study import run_energy_error
        from mcetm_experiments.energy_error.tables import show_energy_error

        results = run_energy_error(self)
        show_energy_error(results, output())
        tasks = (f"energy-error-{name.split('-')[0]}" for name in results["datasets"])
        say_written(self.out, "energy-error", *tasks)
        return 0

"""The settings of `mcetm study rollouts`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mcetm.settings import Seed, settings
from mcetm_experiments.shared.settings import (
    Folder,
    KeptFolder,
    Level,
    Models,
    Preset,
    Source,
    Tasks,
    say_written,
)

PictureKind = Literal["auto", "mujoco", "drawn"]


@settings
class RolloutsStudy:
    """Open-loop rollouts of every model on a locomotion task: errors up to 200 steps ahead, and a film."""

    preset: Preset = "quick"
    """quick: minutes on two cores; fast: full sizes, for a GPU; paper: the paper's training lengths."""

    tasks: Tasks = ()
    """What to run now: by default hopper in preset `quick`, all three in the others."""

    level: Level = "medium-expert"
    """The dataset's level."""

    models: Models = ()
    """What to train now; all by default. `plain` and `anchored` are MC-ETM as in `mcetm train`'s presets
    `paper` and `fast`."""

    source: Source = "collected"
    """Our own collection of the level, or D4RL's file."""

    pictures: PictureKind = "auto"
    """mujoco: rendered, which needs a GL library; drawn: from the bodies' positions; auto: as can be."""

    out: Folder = Path("studies/rollouts")
    """Where results.json, the figures and the films go; what earlier runs left there is shown too."""

    trained: KeptFolder = None
    """Keep trainings here and go on where they were stopped; for one run at a time."""

    seed: Seed = 0
    """Seed of the splits and of the trainings."""

    def run(self) -> int:
        """Train, follow, write, print."""
        from mcetm.console import output
        from mcetm_experiments.rollouts.figures import show_rollouts
        from mcetm_experiments.rollouts.study import run_rollouts

        results = run_rollouts(self)
        show_rollouts(results, output())
        films = [f"rollouts-{task}" for task in results["films"]]
        say_written(self.out, "rollouts", *films)
        print(f"and {', '.join(str(self.out / f'{film}.gif') for film in films)}")
        return 0

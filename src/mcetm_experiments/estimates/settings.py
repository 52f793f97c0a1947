"""The settings of `mcetm study estimates`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from mcetm.settings import Positive, Seed, settings
from mcetm_experiments.shared.settings import Folder, say_written


@settings
class EstimatesStudy:
    """How far estimates without a simulator are from returns in it, and whether their verdicts are right."""

    logs: Annotated[tuple[str, ...], arg(metavar="NAME …", help_behavior_hint="")] = (
        "pendulum-mixed",
        "tank-mixed",
    )
    """Datasets from `mcetm data list`. Policies of locomotion tasks are SAC snapshots from a data folder
    (`MCETM_DATA`); those of other tasks are trained on the log for different lengths."""

    preset: Literal["quick", "fast"] = "quick"
    """Sizes of critics and models: quick has minutes on two cores, fast is for a GPU."""

    lengths: Annotated[tuple[Positive, ...], arg(metavar="STEPS …", help_behavior_hint="")] = (
        50,
        200,
        800,
        3000,
    )
    """Updates of the policies that are trained here."""

    episodes: Positive = 200
    """Episodes in the simulator from which the true return of each policy is measured."""

    rows: Annotated[Positive | None, arg(metavar="INT")] = None
    """Rows of each log, collected anew. None: as many as the dataset has."""

    seeds: Positive = 2
    """Logs of each name."""

    seed: Seed = 0
    """The first of their seeds. 0 is the dataset itself, others are collected anew by its recipe."""

    out: Folder = Path("studies/estimates")
    """Where results.json and the figure go."""

    def run(self) -> int:
        """Estimate, measure, write, print."""
        from mcetm.console import output
        from mcetm_experiments.estimates.figures import show_estimates
        from mcetm_experiments.estimates.study import run_estimates

        results = run_estimates(self)
        show_estimates(results, output())
        say_written(self.out, "estimates")
        return 0

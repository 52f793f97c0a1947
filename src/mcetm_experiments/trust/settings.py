"""The settings of `mcetm study trust`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from mcetm.settings import NonNegative, Positive, settings
from mcetm_experiments.shared.settings import Folder, say_written

TOSSES = "cube-tosses"
"""The real tosses of the contact study, which are no dataset with a name."""


@settings
class TrustStudy:
    """What a trust region knows: near pairs, far ones, and false alarms on fresh episodes."""

    logs: Annotated[tuple[str, ...], arg(metavar="SOURCE …", help_behavior_hint="")] = (
        "pendulum-mixed",
        "tank-mixed",
        "hopper-medium",
        "halfcheetah-medium",
        TOSSES,
    )
    """Any datasets that `mcetm data inspect` takes, and `cube-tosses`."""

    rows: Positive = 100_000
    """Rows of each log at most."""

    preset: Literal["quick", "fast"] = "quick"
    """Whose score of pairs and whose ensemble: quick has minutes on two cores, fast is for a GPU."""

    models: Annotated[tuple[str, ...], arg(metavar="MODEL …", help_behavior_hint="")] = (
        "gaussian",
        "diffusion",
        "manifold-etm",
        "standard-etm",
        "anchored-etm",
    )
    """Models whose error to expect is looked at by the distance from the log, with the first seed."""

    visited: NonNegative = 2000
    """Steps of each finished policy on which scores are asked for large errors of MC-ETM's model; 0 leaves
    them out. Logs without a simulator have none."""

    seeds: Positive = 3
    """Each has a split between episodes and initial weights of its own."""

    out: Folder = Path("studies/trust")
    """Where results.json and the figure go."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm_experiments.trust.figures import show_trust
        from mcetm_experiments.trust.study import run_trust

        results = run_trust(self)
        show_trust(results, output())
        say_written(self.out, "trust")
        return 0

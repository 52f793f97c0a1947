"""The settings of `mcetm study contact`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from mcetm.settings import Seed, settings
from mcetm_experiments.shared.settings import Folder, say_written


@settings
class ContactStudy:
    """Real cube tosses: one-step and open-loop errors of every transition model."""

    data: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """cube_tosses.npz; looked for in $MCETM_DATA/contactnets by default."""

    preset: Literal["quick", "fast"] = "quick"
    """quick: minutes on two cores; fast: full size, for a GPU."""

    out: Folder = Path("studies/contact")
    """Where results.json and the figure go."""

    seed: Seed = 0
    """The first of the seeds."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm_experiments.contact.figures import show_contact
        from mcetm_experiments.contact.study import run_contact

        results = run_contact(self)
        show_contact(results, output())
        say_written(self.out, "contact")
        return 0

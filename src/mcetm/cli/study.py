"""`mcetm study`: the experiments, one command each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg, subcommand


@dataclass(frozen=True)
class Contact:
    """Real cube tosses: one-step and open-loop errors of every transition model."""

    data: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """cube_tosses.npz; looked for in $MCETM_DATA/contactnets by default."""

    preset: Literal["quick", "fast"] = "quick"
    """quick: minutes on two cores; fast: full size, for a GPU."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/contact")
    """Where results.json and the figure go."""

    seed: int = 0
    """The first of the seeds."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm.report.contact import show_contact
        from mcetm.studies.contact import run_contact

        results = run_contact(self.out, data=self.data, preset=self.preset, seed=self.seed)
        show_contact(results, output())
        print(f"wrote {self.out / 'results.json'} and {self.out / 'contact.png'} (and .svg)")
        return 0


@dataclass(frozen=True)
class Bound:
    """Random finite MDPs: how often the paper's theory is true, how tight its bound is, who returns most."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 20 MDPs of each family for each amount of data; full: 100."""

    mdps: int | None = None
    """As many MDPs instead."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/bound")
    """Where results.json and the figures go."""

    seed: int = 0
    """Of the MDPs and their data."""

    def run(self) -> int:
        """Measure, write, print."""
        from mcetm.console import output
        from mcetm.report.bound import FIGURES, show_bound
        from mcetm.studies.bound import run_bound

        results = run_bound(self.out, preset=self.preset, mdps=self.mdps, seed=self.seed)
        show_bound(results, output())
        drawn = ", ".join(f"{name}.png" for name in FIGURES)
        print(f"wrote {self.out / 'results.json'} and {drawn} (and .svg) beside it")
        return 0


@dataclass(frozen=True)
class ListStudies:
    """List the studies there are."""

    def run(self) -> int:
        """Print one line for each."""
        for name, study in STUDIES.items():
            print(f"{name}: {study.__doc__}")
        return 0


STUDIES = {"contact": Contact, "bound": Bound}


@dataclass(frozen=True)
class Study:
    """Run an experiment: a table, a figure and a results.json each."""

    command: (
        Annotated[Contact, subcommand("contact")]
        | Annotated[Bound, subcommand("bound")]
        | Annotated[ListStudies, subcommand("list")]
    )

    def run(self) -> int:
        """Run the chosen study."""
        return self.command.run()

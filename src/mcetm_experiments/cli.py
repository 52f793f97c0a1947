"""The commands `mcetm study` and `mcetm bench`, made of each study's own settings."""

from __future__ import annotations

import functools
import operator
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

from tyro.conf import subcommand

from mcetm_experiments.bench.settings import Bench


class Settings(Protocol):
    """The settings of a study: a frozen dataclass whose fields are the options of its command."""

    def run(self) -> int:
        """Do the study; the result is the exit code."""
        ...


# Settings are light: whatever needs JAX is imported when a study runs, so that `--help` is instant.
STUDIES: dict[str, type[Settings]] = {
    name: pkgutil.resolve_name(f"mcetm_experiments.{place}")
    for name, place in {
        "contact": "contact.settings:ContactStudy",
        "didactic": "didactic.settings:DidacticStudy",
        "landscape": "landscape.settings:LandscapeStudy",
        "bound": "bound.settings:BoundStudy",
        "cross-dataset": "cross_dataset.settings:CrossDatasetStudy",
        "rollouts": "rollouts.settings:RolloutsStudy",
        "energy-error": "energy_error.settings:EnergyErrorStudy",
        "trust": "trust.settings:TrustStudy",
        "benchmark": "benchmark.settings:BenchmarkStudy",
        "estimates": "estimates.settings:EstimatesStudy",
    }.items()
}
"""Every study by the name that a person types. A new one is a folder of its own and a line here."""


@dataclass(frozen=True)
class ListStudies:
    """List the studies there are."""

    def run(self) -> int:
        """Print one line for each."""
        for name, study in STUDIES.items():
            print(f"{name}: {study.__doc__}")
        return 0


if TYPE_CHECKING:
    Chosen = Settings
else:
    kinds = {**STUDIES, "list": ListStudies}
    Chosen = functools.reduce(operator.or_, (Annotated[kinds[name], subcommand(name)] for name in kinds))


@dataclass(frozen=True)
class Study:
    """Run an experiment: a table, a figure and a results.json each."""

    command: Chosen
    """The study and its settings."""

    def run(self) -> int:
        """Run the chosen study."""
        from mcetm.compilation import keep_programs

        keep_programs()
        return self.command.run()


COMMANDS = {"bench": Bench, "study": Study}
"""What this package adds to `mcetm`."""

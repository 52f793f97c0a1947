"""The settings of `mcetm study benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from mcetm.settings import Positive, Weight, settings
from mcetm_experiments.shared.settings import Folder, KeptFolder


@settings
class BenchmarkStudy:
    """Tables of algorithms on logs, made of cells that are trained once each; a stopped one goes on."""

    plan: str = "paper"
    """What to find out: `paper`, `small` (minutes on two cores), or a TOML file of your own."""

    only: Annotated[tuple[str, ...], arg(metavar="TABLE …", help_behavior_hint="")] = ()
    """Tables of the plan to train now; all by default. The page shows all there is."""

    data: KeptFolder = None
    """Take D4RL's own files, from this folder, instead of our collection of the same levels."""

    jobs: Annotated[Positive | None, arg(metavar="N", help_behavior_hint="")] = None
    """Cells trained at the same time, if not as many as the plan says; several share a GPU well."""

    minutes: Weight | None = None
    """Begin no cell after so many minutes."""

    retry: bool = False
    """Try again what has failed."""

    page: bool = False
    """Train nothing: make tables, figures and page of what is there."""

    out: Folder = Path("studies/benchmark")
    """Where cells, runs, logs, the page and the figures go."""

    def run(self) -> int:
        """Train what is missing, and show what there is."""
        from mcetm_experiments.benchmark.study import run_benchmark

        return run_benchmark(self)

"""`mcetm bench`: speed on the machine at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from mcetm.settings import Positive, Rate, settings

BenchmarkName = Literal["all", "sampling", "energies", "policy", "collection", "train", "models"]


@settings
class Bench:
    """Measure speed here: warm-up, median and quartiles, compilation apart, beside a reference."""

    name: Positional[Annotated[BenchmarkName, arg(metavar="NAME")]] = "all"
    """sampling: Langevin chains; energies: their training; policy: updates with rollouts; collection;
    train: the main job by stages; models: sampling time of every transition model; all by default."""

    size: Annotated[Literal["small", "full"] | None, arg(help_behavior_hint="")] = None
    """full: the paper's sizes, the default on an accelerator; small: the default on a CPU."""

    seconds: Rate = 100.0
    """Time for each benchmark: rows not begun by then are left out, and named."""

    algos: Annotated[tuple[str, ...], arg(metavar="ALGO", help_behavior_hint="")] = ()
    """For policy: what to measure; sac, mopo, mobile and mcetm by default."""

    seeds: Annotated[tuple[Positive, ...], arg(metavar="N", help_behavior_hint="")] = ()
    """For policy: how many seeds at once; 1, 5 and 16 by default, and 8 for MC-ETM."""

    json: Annotated[bool, arg(help_behavior_hint="")] = False
    """Print JSON, and no table."""

    record: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Also write the JSON, with hardware, versions and commit, to this file."""

    def run(self) -> int:
        """Measure, print, keep."""
        import json

        from mcetm import UserError
        from mcetm.console import output
        from mcetm.files import check_output, make_folder, write_json
        from mcetm_experiments.bench.run import BENCHMARKS, run_benchmarks
        from mcetm_experiments.bench.tables import show_benchmarks

        if (self.algos or self.seeds) and self.name not in ("all", "policy"):
            raise UserError("--algos and --seeds are for the benchmark policy.")
        if self.record is not None:
            make_folder(check_output(self.record).parent)  # before the work
        names = list(BENCHMARKS) if self.name == "all" else [self.name]
        results = {
            "command": self._command(),
            **run_benchmarks(names, size=self.size, seconds=self.seconds, algos=self.algos, seeds=self.seeds),
        }
        if self.record is not None:
            write_json(self.record, results)
        if self.json:
            print(json.dumps(results, indent=1))
        else:
            show_benchmarks(results, output())
        return 0

    def _command(self) -> str:
        """How to measure the same again."""
        words = ["mcetm bench", self.name, f"--seconds {self.seconds:g}"]
        words += [] if self.size is None else [f"--size {self.size}"]
        words += [f"--algos {' '.join(self.algos)}"] if self.algos else []
        words += [f"--seeds {' '.join(map(str, self.seeds))}"] if self.seeds else []
        return " ".join(words)

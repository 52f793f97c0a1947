"""d3rlpy's updates a second beside ours, for the three algorithms that both have.

    python benchmarks/updates.py --python DIR/bin/python [--size small|full] [--record]

Ours are those of `mcetm bench policy`, which measures any algorithms with `--algos`. `--python` names an
interpreter that has d3rlpy (see `against_d3rlpy.py`); it is measured afterwards, one process at a time, on
random data of the same size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from mcetm.data.files import write_file
from mcetm_experiments.bench.run import run_benchmarks
from mcetm_experiments.bench.subjects import random_log
from record import record

OUTSIDE = {"td3bc": 2000, "iql": 1000, "cql": 200}
"""Updates with d3rlpy: enough for a rate."""


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True, help="an interpreter that has d3rlpy")
    parser.add_argument("--size", choices=["small", "full"], default=None)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    ours = run_benchmarks(["policy"], size=given.size, seconds=600.0, algos=list(OUTSIDE), seeds=[1, 5])
    record(
        "updates",
        {
            "device": ours["device"],
            "mcetm": ours["benchmarks"]["policy"],
            "d3rlpy_updates_per_second": _outside(given.python),
        },
    )


def _outside(python: str) -> dict[str, dict[str, float]]:
    """d3rlpy's rates, on the CPU and on an accelerator if it finds one."""
    found: dict[str, dict[str, float]] = {}
    script = str(Path(__file__).with_name("outside.py"))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.hdf5"
        write_file(random_log(100_000), path)
        for algo, steps in OUTSIDE.items():
            command = [python, script, str(path), "HalfCheetah-v4", algo, str(steps), "0", "--speed"]
            for where in ([], ["--cpu"]):
                done = subprocess.run([*command, *where], stdout=subprocess.PIPE, text=True, check=True)
                line = json.loads(done.stdout.splitlines()[-1])
                found.setdefault(algo, {})[line["device"]] = round(line["rate"], 1)
    return found


if __name__ == "__main__":
    main()

"""How long `mcetm --help` takes, beside a bare Python interpreter and an import of JAX."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from record import record

ROUNDS = 7
COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "mcetm_help": [sys.executable, "-m", "mcetm", "--help"],
    "mcetm_data_inspect_help": [sys.executable, "-m", "mcetm", "data", "inspect", "--help"],
    "import_jax": [sys.executable, "-c", "import jax"],
}


def main() -> None:
    """Median of a few runs each, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - start)
    record("startup", {f"{name}_seconds": round(statistics.median(s), 3) for name, s in seconds.items()})


if __name__ == "__main__":
    main()

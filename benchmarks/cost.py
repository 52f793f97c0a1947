"""What twelve tasks × all systems × five seeds cost, from measured times; the tables of docs/cost.md.

    python benchmarks/cost.py [--tasks 12] [--seeds 5]

Seconds of updates are those of `policy-h200.json` (alone on the device) where it has the system. Else they
are those of `locomotion-*.json` (three seeds, other runs on the device), as if seeds took turns. What a run
does beside its updates is the median of three tasks in `locomotion-*.json`.
"""

from __future__ import annotations

import argparse
import heapq
import json
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results"
SYSTEMS = {
    "mcetm": "MC-ETM, K = 10",
    "mobile": "MOBILE",
    "mopo": "MOPO",
    "morel": "MOReL",
    "empo": "",
    "rambo": "RAMBO",
    "combo": "COMBO",
    "cql": "CQL",
    "edac": "EDAC",
    "td3bc": "TD3+BC",
    "iql": "IQL",
    "bc": "",
}
"""Systems by the names of `--algo`, and what rows of the bench call them."""
_MEASURED_SEEDS = 3
_MEASURED_UPDATES = 300_000


def updates_seconds(rows: list[dict[str, Any]], name: str, seeds: int) -> float | None:
    """Seconds of 1,000 updates of so many seeds in one program; between two numbers of seeds, a line."""
    prefix = f"{name}, "
    known = {
        int(row["work"].removeprefix(prefix).split()[0]): row["seconds"]["median"]
        for row in rows
        if name and row["work"].startswith(prefix) and row["work"].removeprefix(prefix)[0].isdigit()
    }
    if seeds in known:
        return known[seeds]
    if len(known) < 2:
        return None
    (low, fast), (high, slow) = sorted(known.items())[:: len(known) - 1]
    return fast + (seeds - low) / (high - low) * (slow - fast)


def system_costs(seeds: int) -> dict[str, dict[str, float]]:
    """For each system: seconds of 1,000 updates, of all else, and the updates of its authors."""
    rows = json.loads((RESULTS / "policy-h200.json").read_text())["rows"]
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in RESULTS.glob("locomotion-*.json"):
        if "horizon" not in path.stem:
            for name, found in json.loads(path.read_text())["algorithms"].items():
                runs.setdefault(name, []).append(found)
    costs = {}
    for name, called in SYSTEMS.items():
        whole = [run for run in runs[name] if run.get("seconds") and run["updates"] == _MEASURED_UPDATES]
        alone = updates_seconds(rows, called, seeds)
        shared = median(run["policy_seconds"] for run in whole) / (_MEASURED_UPDATES / 1000)
        costs[name] = {
            "updates": shared * seeds / _MEASURED_SEEDS if alone is None else alone,
            "rest": median(run["seconds"] - run["policy_seconds"] for run in whole),
            "published": whole[0]["published_updates"],
            "alone": alone is not None,
        }
    return costs


def makespan(cells: list[float], devices: int) -> float:
    """Seconds until all cells are done: the longest first, each on the device that is free first."""
    free = [0.0] * devices
    for cell in sorted(cells, reverse=True):
        heapq.heapreplace(free, free[0] + cell)
    return max(free)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    costs = system_costs(options.seeds)
    budgets = {"`fast`": lambda cost: _MEASURED_UPDATES, "authors'": lambda cost: cost["published"]}
    print(
        "| system | s for 1,000 updates | s beside | h at 300,000 updates | authors' updates | h at these |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    cells: dict[str, list[float]] = {budget: [] for budget in budgets}
    for name, cost in costs.items():
        seconds = {
            budget: cost["rest"] + cost["updates"] * updates(cost) / 1000
            for budget, updates in budgets.items()
        }
        for budget, one in seconds.items():
            cells[budget] += [one] * options.tasks
        hours = [options.tasks * one / 3600 for one in seconds.values()]
        star = "" if cost["alone"] else " *"
        print(
            f"| {name} | {cost['updates']:.2f}{star} | {cost['rest']:.0f} | {hours[0]:.1f} | "
            f"{cost['published']:,.0f} | {hours[1]:.1f} |"
        )
    totals = [sum(found) / 3600 for found in cells.values()]
    print(f"| **all** | | | **{totals[0]:.1f}** | | **{totals[1]:.1f}** |")
    print()
    print("| H200s | hours at 300,000 updates | hours at the authors' |")
    print("|---:|---:|---:|")
    for devices in (1, 2, 4, 8, 16, 32):
        hours = [makespan(found, devices) / 3600 for found in cells.values()]
        print(f"| {devices} | {hours[0]:.1f} | {hours[1]:.1f} |")


if __name__ == "__main__":
    main()

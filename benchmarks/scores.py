"""Print every system's recorded locomotion scores as a Markdown table, beside the published ones."""

from __future__ import annotations

import json

from locomotion import PUBLISHED
from mcetm.pipeline import algorithm_names, make_config
from record import RESULTS


def main() -> None:
    """A row for each algorithm, two columns for each task."""
    tasks = ("hopper", "halfcheetah", "walker2d")
    found = {task: json.loads((RESULTS / f"locomotion-{task}.json").read_text()) for task in tasks}
    print("| " + " | ".join(["", *(f"{task}-medium | published" for task in tasks)]) + " |")
    print("|---" * (1 + 2 * len(tasks)) + "|")
    print("| the data | " + " | ".join(f"{found[task]['data_score']:.0f} | " for task in tasks) + "|")
    for algo in algorithm_names():
        cells = []
        for task in tasks:
            result = found[task]["algorithms"].get(algo)
            published = PUBLISHED[task].get(algo)
            cells.append("·" if result is None else f"{result['score']:.1f} ± {result['score_std']:.1f}")
            cells.append("" if published is None else f"{published:.1f}")
        print("| " + " | ".join([make_config(algo=algo).label, *cells]) + " |")


if __name__ == "__main__":
    main()

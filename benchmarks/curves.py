"""Draw the learning curves of `locomotion.py`'s recorded results.

python benchmarks/curves.py [--algos mcetm mobile mopo ...] [--out docs/research/locomotion]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from mcetm.pipeline import make_config
from mcetm.report.figures import STYLES, figure
from record import RESULTS

TASKS = ("hopper", "halfcheetah", "walker2d")


def main() -> None:
    """One panel for each task: mean over seeds, and between which seeds it lies."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--algos", nargs="+", default=["mcetm", "mobile", "mopo"])
    parser.add_argument("--out", type=Path, default=RESULTS.parents[1] / "docs/research/locomotion")
    given = parser.parse_args()
    with figure(given.out, width=9.0, height=3.2) as drawn:
        axes = drawn.subplots(1, len(TASKS))
        for axis, task in zip(axes, TASKS, strict=True):
            content = json.loads((RESULTS / f"locomotion-{task}.json").read_text())
            axis.set(title=f"{task}-medium", xlabel="thousand updates")
            axis.axhline(content["data_score"], color="#999999", linewidth=1, label="the data")
            for algo, style in zip(given.algos, STYLES, strict=False):
                if algo not in content["algorithms"]:
                    continue
                found = content["algorithms"][algo]
                scores = np.array(found["curve"]["score"])
                updates = np.array(found["curve"]["step"]) / 1000
                axis.plot(
                    updates, scores.mean(axis=1), label=make_config(algo=algo).label, markersize=3, **style
                )
                low, high = scores.min(axis=1), scores.max(axis=1)
                axis.fill_between(updates, low, high, color=style["color"], alpha=0.15, linewidth=0)
                # A short line at the right edge: the published score.
                if found["published"] is not None:
                    axis.axhline(found["published"], 0.97, 1.0, color=style["color"], linewidth=2)
        axes[0].set_ylabel("normalised score")
        handles, labels = axes[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=6)


if __name__ == "__main__":
    main()

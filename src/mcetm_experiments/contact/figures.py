"""The contact study as a table and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcetm.report import STYLES, figure, legend_below
from mcetm_experiments.shared.summary import cell

if TYPE_CHECKING:
    from rich.console import Console


def show_contact(results: dict[str, Any], console: Console) -> None:
    """Errors of every model at every horizon, mean ± spread over seeds, and who wins where."""
    from rich.table import Table

    horizons = results["horizons"]
    for kind, words in (("point", "point predictions"), ("sampled", "samples")):
        for quantity, unit in results["units"].items():
            table = Table(title=f"{quantity} error of {words}, {unit}, by steps ahead")
            table.add_column("model")
            for horizon in horizons:
                table.add_column(str(horizon), justify="right")
            table.add_column("training", justify="right")
            for name, model in results["models"].items():
                if kind not in model:
                    continue
                cells = model[kind][quantity]
                spreads = cells["std"] or [None] * len(horizons)
                shown = [cell(m, s) for m, s in zip(cells["mean"], spreads, strict=True)]
                table.add_row(name, *shown, f"{model['seconds']:.0f} s" if model["seconds"] else "")
            console.print(table)
    for quantity, winners in results["winners"].items():
        said = "; ".join(f"{horizon}: {who}" for horizon, who in winners.items())
        console.print(f"least {quantity} error of point predictions, by steps ahead: {said}.")


def draw_contact(path: Path, runs: list[dict[str, Any]]) -> None:
    """Error against the horizon, and the height of one falling cube."""
    units = {"position": "position error, cube widths", "rotation": "rotation error, degrees"}
    names = [name for name in runs[0] if name not in ("no change", "example")]
    with figure(path, width=9.0, height=3.2) as drawn:
        left, middle, right = drawn.subplots(1, 3)
        for axis, quantity in ((left, "position"), (middle, "rotation")):
            for name, style in zip(names, STYLES, strict=False):
                curves = np.array([run[name]["point"][quantity] for run in runs])
                steps = np.arange(1, curves.shape[1] + 1)
                axis.plot(steps, curves.mean(axis=0), label=name, markevery=8, markersize=4, **style)
                low, high = curves.min(axis=0), curves.max(axis=0)
                axis.fill_between(steps, low, high, color=style["color"], alpha=0.15)
            axis.set(xlabel="steps ahead (1/148 s each)", ylabel=units[quantity], yscale="log")
        example = runs[0]["example"]
        steps = np.arange(1, len(example["ground truth"]) + 1)
        right.plot(steps, example["ground truth"], color="0.6", linewidth=4, label="ground truth")
        for name, style in zip(names, STYLES, strict=False):
            right.plot(steps, example[name], markevery=8, markersize=4, **style)
        right.set(xlabel="steps ahead", ylabel="height of the centre, cube widths", title="one held-out toss")
        legend_below(drawn, [left, right], ncols=6)

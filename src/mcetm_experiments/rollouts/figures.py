"""The rollouts study as tables and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcetm.report import STYLES, figure, legend_below
from mcetm_experiments.rollouts.predictions import CONFINED, PREDICTIONS

if TYPE_CHECKING:
    from rich.console import Console


def show_rollouts(results: dict[str, Any], console: Console) -> None:
    """The median start's error after so many steps, with the middle 80 % of starts."""
    from rich.table import Table

    for task, models in results["tasks"].items():
        for measure, unit in (("normalised", "spreads of the states"), ("raw", "raw units")):
            table = Table(title=f"{task}-{results['level']}: median error ({unit}) after so many steps")
            table.add_column("model")
            for horizon in results["horizons"]:
                table.add_column(str(horizon), justify="right")
            for model, found in models.items():
                name = results["models"].get(model, "no change")
                for kind in (kind for kind in PREDICTIONS if kind in found):
                    low, middle, high = np.array(found[kind][measure])
                    cells = (f"{m:.3g} [{a:.2g}, {b:.2g}]" for a, m, b in zip(low, middle, high, strict=True))
                    table.add_row(name + PREDICTIONS[kind], *cells)
                if measure == "normalised" and len(found.get("members", ())) > 1:
                    members = np.array(found["members"])
                    spans = zip(members.min(axis=0), members.max(axis=0), strict=True)
                    table.add_row(f"{name}, members", *(f"{a:.2g} to {b:.2g}" for a, b in spans))
            console.print(table)


def draw_rollouts(path: Path, tasks: dict[str, dict[str, Any]], models: dict[str, str]) -> None:
    """Errors against the horizon: left every model with its members' range, right other predictions."""
    with figure(path, width=9.0, height=0.7 + 3.1 * len(tasks)) as drawn:
        axes = drawn.subplots(len(tasks), 3, squeeze=False, sharey="row")
        for row, (task, parts) in zip(axes, tasks.items(), strict=True):
            for axis, title in zip(
                row, ("members", "middle 80 % of starts", "MC-ETM's predictions"), strict=True
            ):
                _draw_still(axis, parts["unchanged"])
                axis.set(xscale="log", yscale="log", title=f"{task}: {title}", xlabel="steps ahead")
            row[0].set_ylabel("median error, spreads of the states")
            for (name, label), style in zip(models.items(), STYLES, strict=False):
                if name in parts:
                    _draw_model(row, parts[name], label, style)
            _draw_ways(row[2], parts, models)
        legend_below(drawn, axes[:, 0], ncols=4, fontsize=8)


def _steps(curve: Any) -> np.ndarray:
    return np.arange(1, len(curve) + 1)


def _marks(curve: Any) -> list[int]:
    """Marks at even distances on a logarithmic axis."""
    return sorted({int(i) - 1 for i in np.geomspace(1, len(curve), 6)})


def _draw_still(axis: Any, part: dict[str, Any]) -> None:
    middle = part["predictions"]["point"]["normalised"][1]
    axis.plot(_steps(middle), middle, color="0.75", linewidth=3, label="no change")


def _draw_model(row: Any, part: dict[str, Any], label: str, style: dict[str, Any]) -> None:
    low, middle, high = part["predictions"]["point"]["normalised"]
    members = np.array(part["members"])
    ranges = ((members.min(axis=0), members.max(axis=0)), (low, high))
    for axis, (below, above) in zip(row, ranges, strict=False):
        axis.plot(_steps(middle), middle, label=label, markevery=_marks(middle), ms=4, **style)
        axis.fill_between(_steps(middle), below, above, color=style["color"], alpha=0.12, linewidth=0)


def _draw_ways(axis: Any, parts: dict[str, Any], models: dict[str, str]) -> None:
    dashes = {"point": "-", "sampled": ":", "selected": "--"}
    for name, style in zip(models, STYLES, strict=False):
        kinds: dict[str, Any] = parts[name]["predictions"] if name in parts else {}
        if "selected" not in kinds:
            continue
        for kind, found in kinds.items():
            free = CONFINED.get(kind, kind)
            middle = found["normalised"][1]
            label = models[name].removeprefix("MC-ETM, ") + (PREDICTIONS[kind] or ", point")
            # Confined is paler than free: for most steps the two are one line.
            look: dict[str, Any] = {"ls": dashes[free], "alpha": 1.0 if free == kind else 0.45}
            axis.plot(_steps(middle), middle, color=style["color"], label=label, **look)
        axis.legend(fontsize=7)

"""The landscape study as tables and two figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mcetm.report import STYLES, figure
from mcetm_experiments.shared.summary import cell

if TYPE_CHECKING:
    from rich.console import Console

_TABLES = {
    "normal": "energy gap against distance along the normal",
    "tangent": "energy gap against distance along the tangent",
    "ratio": "gap along the normal ÷ gap along the tangent",
    "auroc": "AUROC of steps along the normal, all (s, a) together",
    "pairs": "share of (s, a) whose energy rises along the normal",
}


def show_landscape(results: dict[str, Any], console: Console) -> None:
    """What energies make of steps on and off the manifold, mean ± spread over seeds, and what they cost."""
    from rich.table import Table

    models = results["models"]
    for measure, title in _TABLES.items():
        table = Table(title=title)
        table.add_column("model")
        for distance in results["distances"]:
            table.add_column(f"{distance:g}", justify="right")
        for name, model in models.items():
            table.add_row(name, *_cells(model[measure]))
        console.print(table)
    table = Table(title="distances from the ground truth and from the manifold")
    for column in ("model", "error of predictions", "their distance", "after long chains", "training"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for name, model in models.items():
        ends = (_cells(model["error"])[0], _cells(model["off"])[0], _cells(model["drift"])[-1])
        table.add_row(name, *ends, f"{model['seconds']:.3g} s")
    console.print(table)
    parts, equal = results["parts"], results["at equal time"]
    console.print(f"The regressor errs by {parts['regressor']['error']:.3g}.")
    then = ", ".join(f"{name} {found['normal']:.3g}" for name, found in equal["models"].items())
    lead = f"Gap at distance {results['watched']:g} along the normal"
    console.print(f"{lead} after {equal['seconds']:.3g} s of training: {then}.")


def _cells(measure: dict[str, Any]) -> list[str]:
    means = np.atleast_1d(measure["mean"])
    spreads = [None] * len(means) if measure["std"] is None else np.atleast_1d(measure["std"])
    return [cell(mean, spread) for mean, spread in zip(means, spreads, strict=True)]


def draw_slices(
    path: Path,
    slices: dict[str, Float[np.ndarray, "points normal tangent"]],
    shown: Sequence[tuple[float, float]],
    reach: float,
) -> None:
    """Energies on planes spanned by tangent and normal at true transitions; darker is lower, as in the paper.

    Every slice is measured from its own lowest point, on one logarithmic scale of colours.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=2.5, foreground="black")]  # visible on every colour
    levels = (1.0, 10.0, 100.0)
    with figure(path, width=1.95 * len(shown) + 1.1, height=1.85 * len(slices) + 0.5) as drawn:
        axes = drawn.subplots(len(slices), len(shown), sharex=True, sharey=True, squeeze=False)
        image: Any = None
        for row, (name, energies) in zip(axes, slices.items(), strict=True):
            for axis, energy in zip(row, energies, strict=True):
                above = np.maximum(energy - energy.min(), 1e-3)
                image = axis.imshow(
                    above,
                    origin="lower",
                    extent=(-reach, reach, -reach, reach),
                    cmap="cividis",
                    norm=LogNorm(0.1, 100.0),
                    interpolation="nearest",
                )
                lines = axis.contour(
                    above, levels, colors="white", linewidths=0.7, extent=(-reach, reach, -reach, reach)
                )
                for label in axis.clabel(lines, fmt="%g", fontsize=6):
                    label.set_path_effects(outline)
                axis.plot(0.0, 0.0, marker="+", color="white", markersize=7, path_effects=outline)
                axis.grid(visible=False)
            row[0].set_ylabel(f"{name}\nalong the normal")
        for top, bottom, (state, action) in zip(axes[0], axes[-1], shown, strict=True):
            top.set_title(f"$s$ = {state:g}, $a$ = {action:g}")
            bottom.set_xlabel("along the tangent")
        drawn.colorbar(
            image, ax=axes, label=r"$E(s, a, s') - \min E$ on the slice", extend="both", shrink=0.8, aspect=30
        )


def draw_numbers(path: Path, results: dict[str, Any]) -> None:
    """Gaps, AUROC and drift against distance and steps, and the gap against training time."""
    with figure(path, width=9.6, height=5.4) as drawn:
        (gaps, scores), (chains, times) = drawn.subplots(2, 2)
        for (name, model), style in zip(results["models"].items(), STYLES, strict=False):
            _draw(gaps, results["distances"], model["normal"], style)
            dotted = {**style, "linestyle": ":", "markerfacecolor": "white"}
            _draw(gaps, results["distances"], model["tangent"], dotted)
            _draw(scores, results["distances"], model["auroc"], style, name)
            _draw(chains, results["chain"], model["drift"], style, name)
            _draw(times, model["curve"]["seconds"], model["curve"]["normal"], style, name)
        distance = "distance $d$ from the ground truth"
        gaps.set(xlabel=distance, ylabel="$E(s' + d v) - E(s')$", xscale="log")
        gaps.set_yscale("symlog", linthresh=0.1)
        scores.set(xlabel=f"{distance} along a normal", ylabel="AUROC", xscale="log", ylim=(0.4, 1.02))
        chains.set(
            xlabel="Langevin steps from the ground truth", ylabel="distance from the manifold", yscale="log"
        )
        watched = results["watched"]
        times.set(
            xlabel="training time, s", ylabel=f"gap along the normal at $d$ = {watched:g}", yscale="log"
        )
        for axis in (gaps, scores):
            axis.set_xticks(results["distances"], [f"{d:g}" for d in results["distances"]])
            axis.minorticks_off()
        gaps.plot([], [], color="0.4", marker="o", markersize=4, label="$v$ normal")
        gaps.plot(
            [],
            [],
            color="0.4",
            linestyle=":",
            marker="o",
            markersize=4,
            markerfacecolor="white",
            label="$v$ tangent",
        )
        gaps.legend(fontsize=7, loc="lower right")
        for axis in (scores, chains, times):
            axis.legend(fontsize=7)


def _draw(
    axis: Any, x: Sequence[float], measure: dict[str, Any], style: dict[str, Any], label: str = ""
) -> None:
    """Mean and range over seeds."""
    seeds = np.array(measure["seeds"])
    axis.plot(x, measure["mean"], markersize=4, label=label or None, **style)
    axis.fill_between(x, seeds.min(axis=-1), seeds.max(axis=-1), color=style["color"], alpha=0.15)

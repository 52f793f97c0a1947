"""The didactic study as a table and two figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from mcetm.report import STYLES, figure
from mcetm_experiments.shared.summary import cell

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS = {
    "error": "error",
    "near": "near a jump",
    "away": "away",
    "impossible": "impossible, %",
    "impossible near": "impossible near, %",
}


def show_didactic(results: dict[str, Any], console: Console) -> None:
    """Errors and impossible states of every model, mean ± spread over seeds, and what it cost."""
    from rich.table import Table

    for kind, words in (("point", "point predictions"), ("sampled", "samples")):
        table = Table(title=f"{words} on the grid over [−1, 1]²: mean absolute error, impossible states")
        table.add_column("model")
        for title in (*_COLUMNS.values(), "training", "inference"):
            table.add_column(title, justify="right")
        for name, model in results["models"].items():
            if kind not in model:
                continue
            cells = []
            for measure in _COLUMNS:
                found, factor = model[kind][measure], 100.0 if measure.startswith("impossible") else 1.0
                spread = None if found["std"] is None else factor * found["std"]
                cells.append(cell(factor * found["mean"], spread))
            costs = (
                (f"{model['seconds']:.3g} s", f"{1e6 * model['inference']:.3g} µs")
                if kind == "point"
                else ("", "")
            )
            table.add_row(name, *cells, *costs)
        console.print(table)
    models = results["models"]
    for name in (name for name in models if name.endswith("ETM")):
        near = {baseline: model["point"]["near"]["mean"] for baseline, model in models.items()}
        shares = (
            f"{near[name] / near[baseline]:.2f} × that of the {baseline}"
            for baseline in near
            if baseline.startswith("MLP")
        )
        console.print(f"Error of {name} near the discontinuities: {', '.join(shares)}.")


def draw_surfaces(
    path: Path,
    surfaces: dict[str, Float[np.ndarray, "grid grid"]],
    cut: tuple[Float[np.ndarray, " states"], float],
    lines: dict[str, Float[np.ndarray, " states"]],
) -> None:
    """Every surface ŝ'(s, a), the ground truth first, and a cut through all of them (states and action)."""
    columns = 3
    rows = -(-(len(surfaces) + 1) // columns)
    ticks = np.linspace(-1.0, 1.0, len(surfaces["ground truth"]))
    state, action = np.meshgrid(ticks, ticks, indexing="ij")
    with figure(path, width=2.5 * columns, height=2.45 * rows) as drawn:
        # Boxes in three dimensions know nothing of the room that their labels need.
        drawn.set_layout_engine("none")
        places = drawn.add_gridspec(
            rows, columns, left=0.04, right=0.98, bottom=0.05, top=0.96, wspace=0.12, hspace=0.15
        )
        for place, (name, surface) in enumerate(surfaces.items()):
            axis: Any = drawn.add_subplot(places[place], projection="3d")
            shown = axis.plot_surface(
                state,
                action,
                surface,
                cmap="cividis",
                vmin=-1.2,
                vmax=1.6,
                rcount=100,
                ccount=100,
                linewidth=0,
                antialiased=False,
            )
            shown.set_rasterized(True)
            axis.set(xlabel="$s$", ylabel="$a$", zlabel="$s'$", zlim=(-1.3, 1.7))
            axis.set_title(name, y=0.98)
            axis.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), zticks=(-1, 0, 1))
            axis.tick_params(pad=-2)
            axis.xaxis.labelpad = axis.yaxis.labelpad = axis.zaxis.labelpad = -8
            axis.view_init(elev=30, azim=-130)
            axis.set_box_aspect((1, 1, 0.75), zoom=1.05)
        axis = drawn.add_subplot(places[len(surfaces)])
        box = axis.get_position()
        axis.set_position((box.x0 + 0.03, box.y0 + 0.01, box.width - 0.03, box.height - 0.045))
        states, at = cut
        axis.plot(states, lines["ground truth"], color="0.8", linewidth=5, label="ground truth")
        others = [name for name in lines if name != "ground truth"]
        for shift, (name, style) in enumerate(zip(others, STYLES, strict=False)):
            axis.plot(states, lines[name], markersize=4, markevery=(2 * shift, 20), label=name, **style)
        axis.set_ylabel("$s'$", labelpad=-4)
        axis.set(xlabel="$s$", title=f"cut at $a$ = {at:g}", ylim=(-1.2, 1.2))
        axis.set_xticks((-0.55, -0.5, -0.45))
        axis.legend(fontsize=5.5, loc="lower right", handlelength=2.5)


def draw_errors(path: Path, errors: dict[str, Float[np.ndarray, "grid grid"]]) -> None:
    """Where each model errs: |ŝ' − f(s, a)|, mean over seeds, on one colour scale."""
    columns = (len(errors) + 1) // 2
    with figure(path, width=2.5 * columns + 0.6, height=4.8) as drawn:
        axes = drawn.subplots(2, columns, sharex=True, sharey=True).ravel()
        shown: Any = None
        for axis, (name, error) in zip(axes, errors.items(), strict=False):
            shown = axis.imshow(
                error.T, origin="lower", extent=(-1, 1, -1, 1), cmap="magma_r", vmin=0.0, vmax=0.5,
                interpolation="nearest",
            )  # fmt: skip
            axis.grid(visible=False)
            axis.set(
                title=f"{name}: {error.mean():.3f}",
                xticks=(-1, -0.5, 0, 0.5, 1),
                yticks=(-1, -0.5, 0, 0.5, 1),
            )
            axis.label_outer()
        for axis in axes[len(errors) :]:
            axis.set_visible(False)
        for axis in axes[-columns:]:
            axis.set_xlabel("$s$")
        for axis in axes[::columns]:
            axis.set_ylabel("$a$")
        drawn.colorbar(shown, ax=list(axes), label=r"$|\hat s' - f(s, a)|$", extend="max", shrink=0.8)

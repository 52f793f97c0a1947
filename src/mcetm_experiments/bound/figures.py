"""The bound study as tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcetm.report import STYLES, figure, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console

FIGURES = ("terms", "certificates", "returns")
_METHODS = ("model alone", "penalty only", "truncation only", "hybrid")
_BOUNDS = {
    "MOReL": "MOReL",
    "MOBILE": "MOBILE",
    "paper": "hybrid, as the paper states it",
    "hybrid": "hybrid, as proved",
}
_LEAST = 1e-4
_TALLEST = 3.0


def show_bound(results: dict[str, Any], console: Console) -> None:
    """How often statements hold, how much the bounds say, and what the policies return."""
    from rich.table import Table

    betas = results["config"]["betas"]
    for arm, shares in results["statements"].items():
        valid = shares["at a valid β"]
        table = Table(title=f"how often it is true: {arm}")
        for column in ("", *(f"β = {beta:g}" for beta in betas), f"valid β ({valid['cases']} cases)"):
            table.add_column(column, justify="right" if column else "left")
        for name, values in shares.items():
            if name in valid:
                table.add_row(name, *(f"{100 * v:.1f} %" for v in values), f"{100 * valid[name]:.1f} %")
        console.print(table)
    main = results["variants"]["main"]
    _compare(console, "right-hand sides, as shares of the largest gap", main, "certificates")
    _compare(console, "true returns, worst policy 0, best 1", main, "returns")
    signed = "returns as written, r of both signs"
    _compare(console, "true returns of the paper's operator, r of both signs", main, signed)


def _compare(console: Console, title: str, families: dict[str, Any], what: str) -> None:
    from rich.table import Table

    methods = _BOUNDS if what == "certificates" else _METHODS
    baselines = [
        name for name in next(iter(next(iter(families.values())).values()))[what] if "hybrid −" in name
    ]
    table = Table(title=f"{title}: mean ± spread over MDPs; paired differences ± standard error")
    for column in ("family", "rows", *methods, *baselines):
        table.add_column(column, justify="left" if column == "family" else "right")
    for family, parts in families.items():
        for rows, part in parts.items():
            cells = [f"{part[what][m]['mean']:.3f}±{part[what][m]['std']:.2f}" for m in methods]
            paired = [part[what][r] for r in baselines]
            cells += [f"{p['mean']:+.3f}±{p['standard error']:.3f}" for p in paired]
            table.add_row(family, rows, *cells)
    console.print(table)


def draw_bound(out: Path, results: dict[str, Any]) -> None:
    """The two terms against δ, right-hand sides against data, and what policies lose against data."""
    families = results["variants"]["main"]
    rows = str(results["config"]["rows"][-1])
    with _panels(
        out / "terms", families, "δ, as a quantile of the energy: to the right, more is truncated"
    ) as axes:
        for axis, parts in zip(axes, families.values(), strict=True):
            _draw_terms(axis, parts[rows]["by level"])
        axes[0].set_ylabel(f"share of the largest gap\n({rows} rows)")
    with _panels(out / "certificates", families, "transitions in the dataset") as axes:
        for axis, parts in zip(axes, families.values(), strict=True):
            for (name, label), style in zip(_BOUNDS.items(), STYLES, strict=False):
                _draw_by_rows(axis, parts, lambda part, name=name: part["certificates"][name], label, style)
            gaps = STYLES[len(_BOUNDS)]
            _draw_by_rows(axis, parts, lambda part: part["certificates"]["hybrid"]["gap"], "true gap", gaps)
            axis.set(ylim=(0, 1.05))
        axes[0].set_ylabel("share of the largest gap")
    with _panels(out / "returns", families, "transitions in the dataset") as axes:
        for axis, parts in zip(axes, families.values(), strict=True):
            for name, style in zip(_METHODS, STYLES, strict=False):
                _draw_by_rows(
                    axis, parts, lambda part, name=name: part["returns"][name], name, style, lost=True
                )
            axis.set(yscale="log")
        axes[0].set_ylabel("lost return\n(best policy 0, worst 1)")


def _draw_terms(axis: Axes, by_level: dict[str, Any]) -> None:
    """The sum is a broad line, so that what lies on it stays visible."""
    level = by_level["level"]
    lines = {
        "consistency": ("consistency", {}),
        "truncation": ("truncation", {}),
        "their sum (proved)": ("proved", {"linewidth": 5, "alpha": 0.5, "linestyle": "-", "marker": ""}),
        "as the paper states it": ("paper", {"markerfacecolor": "none", "markersize": 7}),
        "true gap": ("gap", {}),
    }
    for (label, (name, changes)), style in zip(lines.items(), STYLES, strict=False):
        low, middle, high = ([_number(q[i]) for q in by_level[name]] for i in ("low", "median", "high"))
        axis.plot(level, middle, label=label, **{"markersize": 4, **style, **changes})
        if name == "proved":
            axis.fill_between(level, low, high, color=style["color"], alpha=0.15, linewidth=0)
    largest = max(_number(q["median"]) for q in by_level["proved"])
    axis.set(ylim=(-0.03 * min(largest, _TALLEST), 1.3 * min(largest, _TALLEST)))
    axis.invert_xaxis()


def _draw_by_rows(
    axis: Axes,
    parts: dict[str, Any],
    pick: Callable[[dict[str, Any]], dict[str, float]],
    label: str,
    style: dict[str, Any],
    *,
    lost: bool = False,
) -> None:
    """Means with standard errors; what is `lost` is drawn as at least what a logarithmic axis can show."""
    rows = [int(r) for r in parts]
    found = [pick(part) for part in parts.values()]
    means = [max(1 - f["mean"], _LEAST) if lost else f["mean"] for f in found]
    errors = [
        min(f["standard error"], 0.9 * m) if lost else f["standard error"]
        for f, m in zip(found, means, strict=True)
    ]
    axis.errorbar(rows, means, yerr=errors, label=label, markersize=4, elinewidth=0.8, **style)
    axis.set_xscale("log")
    axis.set_xticks(rows, [str(r) for r in rows])
    axis.minorticks_off()


@contextmanager
def _panels(path: Path, families: dict[str, Any], xlabel: str) -> Iterator[list[Axes]]:
    """One panel for each family under one legend."""
    with figure(path, width=9.0, height=3.1) as drawn:
        axes = list(drawn.subplots(1, len(families)))
        yield axes
        for axis, family in zip(axes, families, strict=True):
            axis.set_title(family)
        axes[len(axes) // 2].set_xlabel(xlabel)
        legend_below(drawn, axes, ncols=6)


def _number(value: float | None) -> float:
    """None stands for infinity."""
    return float("inf") if value is None else value

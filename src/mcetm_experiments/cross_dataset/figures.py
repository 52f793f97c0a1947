"""The cross-dataset study as tables and two figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcetm.report import STYLES, figure, legend_below

if TYPE_CHECKING:
    from rich.console import Console

_MEASURES = {
    "mean": "mean absolute error, raw units",
    "median": "median over rows of a row's mean absolute error, raw units",
    "normalised": "mean absolute error in units of each dimension's spread of change",
}


def show_cross_dataset(results: dict[str, Any], console: Console) -> None:
    """The paper's rows beside ours, those that have not been run left blank; then the other measures."""
    rows, models = results["rows"], results["models"]
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        _show(f"{task}: {_MEASURES['mean']}", own, models, "mean", console, paper=True)
    ran = [row for row in rows if has_run(row)]
    for measure in ("median", "normalised"):
        _show(_MEASURES[measure], ran, models, measure, console)
    for task, curves in results["chains"].items():
        _show_curves(
            f"{task}-{results['studied']}: mean absolute error of MC-ETM after so many Langevin steps",
            results["lengths"],
            curves,
            console,
        )
    for task, curves in results["shares"].items():
        counts = ["" if count is None else f"{count:,}" for count in _row_counts(curves)]
        named = {models[name]: [part and part["tests"] for part in parts] for name, parts in curves.items()}
        _show_curves(
            f"{task}-{results['studied']}: mean absolute error by rows of the log", counts, named, console
        )


def _row_counts(curves: dict[str, list[dict[str, Any] | None]]) -> list[int | None]:
    """How many rows each share has; None where no model has been trained on it."""
    columns = zip(*curves.values(), strict=True)
    return [next((part["transitions"] for part in column if part), None) for column in columns]


def has_run(row: dict[str, Any]) -> bool:
    """Whether any model has been measured on this row."""
    return any(row["models"].values())


def _show(
    title: str,
    rows: list[dict[str, Any]],
    models: dict[str, str],
    measure: str,
    console: Console,
    *,
    paper: bool = False,
) -> None:
    from rich.table import Table

    published = list(rows[0]["paper"]) if paper else []
    # Narrow, so that no level's name is cut on a console of 120 columns.
    table = Table(title=f"\n{title}", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for heading in ("trained on", "tested on") if paper else ("task", "trained on", "tested on"):
        table.add_column(heading, no_wrap=True)
    for name in published:
        heading = f"paper's {models[name].removesuffix(', paper')}"
        table.add_column(heading.replace(" ", "\n"), justify="right", style="dim")
    for name in ("no change", *models.values()):
        table.add_column(name.replace(" ", "\n"), justify="right")
    for row in rows:
        found = [row["unchanged"], *(row["models"][name] for name in models)]
        cells = ["" if errors is None else f"{errors[measure]:.3g}" for errors in found]
        named = [row["train"], row["test"]] if paper else [row["task"], row["train"], row["test"]]
        table.add_row(*named, *(f"{row['paper'][name]:.3g}" for name in published), *cells)
    console.print(table)


def _show_curves(
    title: str, columns: Sequence[Any], curves: dict[str, list[dict[str, Any] | None]], console: Console
) -> None:
    from rich.table import Table

    table = Table(title=title)
    for heading in ("", "tested on"):
        table.add_column(heading)
    for column in columns:
        table.add_column(str(column), justify="right")
    for name, curve in curves.items():
        for test in next(filter(None, curve)):
            table.add_row(name, test, *(f"{errors[test]['mean']:.3g}" if errors else "" for errors in curve))
    console.print(table)


def draw_rows(path: Path, results: dict[str, Any]) -> None:
    """Every row that has been run: our models and the paper's, one panel for each task.

    A model that has diverged is drawn at the edge, at ten times the paper's largest error.
    """
    ran = [row for row in results["rows"] if has_run(row)]
    tasks = list(dict.fromkeys(row["task"] for row in ran))
    most = max(sum(row["task"] == task for row in ran) for task in tasks)
    with figure(path, width=7.5, height=1.2 + (0.9 + 0.24 * most) * len(tasks)) as drawn:
        axes = drawn.subplots(len(tasks), 1, squeeze=False)[:, 0]
        for axis, task in zip(axes, tasks, strict=True):
            own = [row for row in ran if row["task"] == task]
            places = range(len(own))
            edge = 10.0 * max(max(row["paper"].values()) for row in own)
            for i, (name, label) in enumerate(results["models"].items()):
                points = [
                    (y, min(row["models"][name]["mean"], edge))
                    for y, row in enumerate(own)
                    if row["models"][name]
                ]
                if not points:
                    continue
                style = {key: value for key, value in STYLES[i].items() if key != "linestyle"}
                axis.plot([x for _, x in points], [y for y, _ in points], ls="", ms=6, label=label, **style)
            for name, mark in (("plain", "$M$"), ("standard", "$S$"), ("mlp", "$P$")):
                label = f"paper's {results['models'][name].removesuffix(', paper')}"
                values = [row["paper"][name] for row in own]
                axis.plot(values, list(places), ls="", marker=mark, color="0.55", ms=5, label=label)
            axis.set_yticks(list(places), [f"{row['train']} → {row['test']}" for row in own])
            axis.set(xscale="log", ylim=(len(own) - 0.5, -0.5), title=f"{task}, trained on → tested on")
        axes[-1].set_xlabel("mean absolute error of the next state, raw units")
        legend_below(drawn, axes, ncols=3, fontsize=8)


def draw_curves(path: Path, results: dict[str, Any]) -> None:
    """Error against the length of chains and against the amount of data, on the level itself and another."""
    studied = results["studied"]
    tests = [studied, *(test for test in results["tests"] if test != studied)][:2]
    kinds = [kind for kind in _CURVES if results[kind]]
    tasks = list(dict.fromkeys(task for kind in kinds for task in results[kind]))
    if not tasks:
        return
    with figure(path, width=0.6 + 4.2 * len(kinds), height=0.9 + 2.6 * len(tasks)) as drawn:
        axes = drawn.subplots(len(tasks), 2 * len(kinds), squeeze=False)
        for i, kind in enumerate(kinds):
            unit, title, draw, side = _CURVES[kind]
            panels = axes[:, 2 * i : 2 * i + 2]
            for row, task in zip(panels, tasks, strict=True):
                for axis, test in zip(row, tests, strict=False):
                    if task in results[kind]:
                        draw(axis, results, task, test)
                        axis.set(xlabel=unit, yscale="log")
                        axis.set_title(f"{task}: {studied} → {test}", fontsize=8)
                    else:
                        axis.set_axis_off()
            small = {"title": title, "ncols": 2, "fontsize": 7, "title_fontsize": 8}
            legend_below(drawn, panels.flat, side if len(kinds) > 1 else "center", **small)
        for row in axes:
            next(axis for axis in row if axis.axison).set_ylabel("mean absolute error")


def _draw_chains(axis: Any, results: dict[str, Any], task: str, test: str) -> None:
    lengths = results["lengths"]
    for (name, curve), style in zip(results["chains"][task].items(), STYLES, strict=False):
        axis.plot(lengths, [errors[test]["mean"] for errors in curve], label=name, ms=4, **style)
    axis.set_xscale("symlog", linthresh=4)
    axis.set_xticks(lengths, [str(length) for length in lengths])
    axis.minorticks_off()


def _draw_shares(axis: Any, results: dict[str, Any], task: str, test: str) -> None:
    curves = results["shares"][task]
    counts = [math.nan if count is None else count for count in _row_counts(curves)]
    for name, style in zip(results["models"], STYLES, strict=False):
        if name in curves:
            # A gap where a share has not been run.
            values = [part["tests"][test]["mean"] if part else math.nan for part in curves[name]]
            axis.plot(counts, values, label=results["models"][name], ms=4, **style)
    axis.set_xscale("log")


_CURVES = {
    "chains": ("Langevin steps", "MC-ETM, paper", _draw_chains, "left"),
    "shares": ("rows of the log", "all models", _draw_shares, "right"),
}
"""Unit, title of the legend, how a panel is drawn, and where the legend stands if both are there."""

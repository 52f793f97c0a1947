"""The estimates study as tables and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcetm.estimates import LABELS
from mcetm.report import STYLES, figure, legend_below

if TYPE_CHECKING:
    from rich.console import Console

_NAMES = {**LABELS, "chosen": "the one to go by"}


def show_estimates(results: dict[str, Any], console: Console) -> None:
    """For each log, what each estimator is worth; then how often intervals hold the truth."""
    from rich.table import Table

    table = Table(title="Estimates without a simulator against returns in it")
    for name in ("log", "estimator"):
        table.add_column(name)
    for name in (
        "answers",
        "mean abs. error",
        "of the range, %",
        "Spearman",
        "regret@1, %",
        "regret@5, %",
        "believed",
        "90 % interval holds the truth",
        "where believed",
    ):
        table.add_column(name, justify="right")
    for log, found in results["summary"]["logs"].items():
        for estimator, of in found.items():
            table.add_row(
                log,
                _NAMES[estimator],
                f"{of['answered']} of {of['asked']}",
                number(of["absolute_error"], "{:,.1f}"),
                number(of["relative_error"], "{:.0f}", 100),
                number(of["spearman"], "{:.2f}"),
                number(of["regret_1"], "{:.0f}", 100),
                number(of["regret_5"], "{:.0f}", 100),
                f"{of['believed']}",
                share(of["coverage"]),
                share(of["coverage_believed"]),
            )
        table.add_section()
    console.print(table)
    for log, found in results["summary"]["logs"].items():
        if (makers := found["chosen"]["of_makers"])["cases"]:
            console.print(
                f"Policies that collected {log}, apart: its interval holds the truth in {share(makers)}"
            )
    for estimator, of in results["summary"]["coverage"].items():
        console.print(
            f"{_NAMES[estimator]}, all logs: the 90 % interval holds the truth in {share(of['all'])}; "
            f"where believed, in {share(of['believed'])}"
        )


def number(value: float | None, form: str, factor: float = 1.0) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else form.format(factor * value)


def share(found: dict[str, Any]) -> str:
    """A share with its binomial interval and the number of cases."""
    if found["share"] is None:
        return "–"
    low, high = found["interval"]
    return f"{100 * found['share']:.0f} % [{100 * low:.0f}, {100 * high:.0f}] of {found['cases']}"


def draw_estimates(path: Path, results: dict[str, Any]) -> None:
    """Estimates against true returns, a panel for each log; filled where they are believed."""
    logs = results["logs"]
    with figure(path, width=max(4.0, 3.2 * len(logs)), height=3.2) as drawn:
        axes = drawn.subplots(1, len(logs), squeeze=False)[0]
        for axis, (name, log) in zip(axes, logs.items(), strict=True):
            truths = [row["true"] for part in log["parts"] for row in part["policies"].values()]
            axis.plot([min(truths), max(truths)], [min(truths), max(truths)], color="0.6", linewidth=1)
            for (estimator, label), style in zip(LABELS.items(), STYLES, strict=False):
                labelled = False
                for row in (row for part in log["parts"] for row in part["policies"].values()):
                    one = row["estimates"].get(estimator)
                    if one is None or one["value"] is None:
                        continue
                    low, high = one["interval"]
                    axis.errorbar(
                        row["true"],
                        one["value"],
                        yerr=[[max(one["value"] - low, 0.0)], [max(high - one["value"], 0.0)]],
                        label=None if labelled else label,
                        color=style["color"],
                        marker=style["marker"],
                        markersize=4,
                        markerfacecolor=style["color"] if one["believed"] else "none",
                        linewidth=0.6,
                    )
                    labelled = True
            axis.set(title=name, xlabel="return in the simulator", ylabel="estimate")
        legend_below(drawn, list(axes), ncols=3)

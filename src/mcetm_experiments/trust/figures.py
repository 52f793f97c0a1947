"""The trust study as tables and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcetm.report import STYLES, figure, legend_below
from mcetm_experiments.shared.summary import cell

if TYPE_CHECKING:
    from rich.console import Console


def show_trust(results: dict[str, Any], console: Console) -> None:
    """For each log, what every score knows near the log and far from it."""
    from rich.table import Table

    for log, found in results["logs"].items():
        table = Table(title=f"{log}: {found['rows']:,} rows in {found['episodes']:,} episodes")
        table.add_column("score")
        near = [f"{size:g}" for size in results["noise"]]
        for size in near:
            table.add_column(f"AUROC {size}", justify="right")
        table.add_column("false alarms, %", justify="right")
        table.add_column("outside, least of all far ones, %", justify="right")
        for name, score in found["scores"].items():
            aurocs = [cell(score["auroc"][size]["mean"], score["auroc"][size]["std"]) for size in near]
            alarms = score["false_alarms"]
            spread = None if alarms["std"] is None else 100 * alarms["std"]
            least = min(min(share["seeds"]) for share in score["outside"].values())
            table.add_row(name, *aurocs, cell(100 * alarms["mean"], spread), f"{100 * least:.1f}")
        console.print(table)
        for model, errors in found["expected_error"].items():
            grows = ", ".join(f"{size}: {error:.3g}" for size, error in errors.items())
            console.print(f"error to expect of {model}, by spreads from the log: {grows}")
        if "visited" in found:
            _show_visited(log, found["visited"], console)


def _show_visited(log: str, visited: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(title=f"{log}: AUROC for large errors, on the states that finished policies visit")
    table.add_column("score")
    for policy, found in visited.items():
        large = 100 * found["large"]["mean"]
        table.add_column(f"{policy}: {large:.0f} % of its errors are large", justify="right")
    for name in next(iter(visited.values()))["auroc"]:
        cells = [found["auroc"][name] for found in visited.values()]
        table.add_row(name, *(cell(auroc["mean"], auroc["std"]) for auroc in cells))
    console.print(table)


def draw_trust(path: Path, results: dict[str, Any]) -> None:
    """AUROC against the size of the noise, a panel for each log."""
    logs, sizes = results["logs"], results["noise"]
    with figure(path, width=max(4.0, 2.4 * len(logs)), height=2.6) as drawn:
        axes = drawn.subplots(1, len(logs), sharey=True, squeeze=False)[0]
        for axis, (log, found) in zip(axes, logs.items(), strict=True):
            for (name, score), style in zip(found["scores"].items(), STYLES, strict=False):
                means = [score["auroc"][f"{size:g}"]["mean"] for size in sizes]
                axis.plot(sizes, means, label=name, markersize=4, **style)
            axis.set(xscale="log", xlabel="noise, in spreads", title=log)
        axes[0].set_ylabel("AUROC against held-out pairs")
        legend_below(drawn, list(axes), ncols=5)

"""The contact study as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcetm.report.cells import cell

if TYPE_CHECKING:
    from rich.console import Console


def show_contact(results: dict[str, Any], console: Console) -> None:
    """Errors of every model at every horizon, mean ± spread over seeds, and who wins where."""
    from rich.table import Table

    horizons = results["horizons"]
    for way, words in (("point", "point predictions"), ("sampled", "samples")):
        for quantity, unit in results["units"].items():
            table = Table(title=f"{quantity} error of {words}, {unit}, by steps ahead")
            table.add_column("model")
            for horizon in horizons:
                table.add_column(str(horizon), justify="right")
            table.add_column("training", justify="right")
            for name, model in results["models"].items():
                if way not in model:
                    continue
                cells = model[way][quantity]
                spreads = cells["std"] or [None] * len(horizons)
                shown = [cell(m, s) for m, s in zip(cells["mean"], spreads, strict=True)]
                table.add_row(name, *shown, f"{model['seconds']:.0f} s" if model["seconds"] else "")
            console.print(table)
    for quantity, winners in results["winners"].items():
        said = "; ".join(f"{horizon}: {who}" for horizon, who in winners.items())
        console.print(f"least {quantity} error of point predictions, by steps ahead: {said}.")

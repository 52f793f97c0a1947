"""A finished run as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show_results(results: dict[str, Any], console: Console, *, normalised: bool) -> None:
    """Mean return of the data and of every algorithm, mean ± spread over seeds."""
    from rich.table import Table

    seeds = len(results["seeds"])
    words = f"mean ± spread over {seeds} seeds" if seeds > 1 else "one seed"
    table = Table(title=f"{results['dataset']}: returns, {words}")
    for name in ("", "return", *(["score"] if normalised else []), "seeds"):
        table.add_column(name, justify="left" if not name else "right")
    blank = [""] if normalised else []
    table.add_row("the data", f"{results['data_return']:,.0f}", *blank, "")
    for name, found in results["algorithms"].items():
        if found is None:
            table.add_row(name, "not measured", *blank, "")
            continue
        mean, spread = found["mean"], found["std"]
        text = f"{mean:,.0f}" if spread is None else f"{mean:,.0f} ± {spread:,.0f}"
        score = [f"{found['score']:.1f}"] if normalised and found["score"] is not None else blank
        table.add_row(name, text, *score, "  ".join(f"{x:,.0f}" for x in found["returns"]))
    console.print(table)

"""A finished run as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcetm.numbers import number, numbers, with_spread
from mcetm.tasks.datasets import source_name

if TYPE_CHECKING:
    from rich.console import Console


def show_results(results: dict[str, Any], console: Console, *, normalised: bool) -> None:
    """Mean return of the data and of every algorithm, mean ± spread over seeds; no empty rows."""
    from rich.table import Table
    from rich.text import Text

    measured = {name: found for name, found in results["algorithms"].items() if found is not None}
    if not measured:
        return
    seeds = len(results["seeds"])
    words = f"mean ± spread over {seeds} seeds" if seeds > 1 else "one seed"
    console.print(Text(f"{source_name(results['dataset'])}: returns, {words}", style="bold"))
    table = Table()
    for name in ("", "return", *(["score"] if normalised else []), "seeds"):
        table.add_column(name, justify="left" if not name else "right")
    blank = [""] if normalised else []
    table.add_row("the data", number(results["data_return"]), *blank, "")
    for name, found in measured.items():
        score = [f"{found['score']:.1f}"] if normalised and found["score"] is not None else blank
        table.add_row(name, with_spread(found["returns"]), *score, "  ".join(numbers(found["returns"])))
    console.print(table)

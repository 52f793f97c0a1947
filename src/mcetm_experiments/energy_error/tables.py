"""The energy-error study as tables, for a terminal and for a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcetm.files import write_text
from mcetm_experiments.shared.summary import cell

if TYPE_CHECKING:
    from rich.console import Console

_POOLED = {
    "pearson": "Pearson",
    "pearson of MSE": "Pearson, MSE",
    "pearson of logs": "Pearson, logs",
    "spearman": "Spearman",
    "auroc": "AUROC",
    "excess": "excess risk",
    "error of accepted": "error, accepted",
    "error of rejected": "error, rejected",
}
_BY_RUNG = {
    "auroc": "AUROC, held out against each rung",
    "spearman": "Spearman within each rung",
    "pearson": "Pearson within each rung",
    "rejected": "share above δ",
}


@dataclass(frozen=True)
class PrintedTable:
    """A title, column names, and rows of cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """As a page has it."""
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return f"{self.title}:\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tables(name: str, found: dict[str, Any], rates: tuple[float, ...]) -> list[PrintedTable]:
    """Everything that was found on one dataset, mean ± spread over seeds."""
    scores, rungs = found["scores"], [rung["name"] for rung in found["rungs"]]
    alarms = tuple(f"{100 * rate:g} %" for rate in rates)
    pooled = tuple(
        (score, *(_cell(numbers["pooled"][measure]) for measure in _POOLED))
        for score, numbers in scores.items()
    )
    return [
        PrintedTable(f"{name}, all rungs together", ("score", *_POOLED.values()), pooled),
        *(
            PrintedTable(
                f"{name}: {title}",
                ("rung", *scores),
                tuple(
                    (rung, *(_cell(numbers[measure], i) for numbers in scores.values()))
                    for i, rung in enumerate(rungs)
                    # Held-out rows against themselves say nothing.
                    if i or measure != "auroc"
                ),
            )
            for measure, title in _BY_RUNG.items()
        ),
        PrintedTable(
            f"{name}: held-out rows above a threshold that was set on others at",
            ("score", *alarms),
            tuple(
                (score, *(_cell(numbers["false alarms"], i) for i in range(len(rates))))
                for score, numbers in scores.items()
            ),
        ),
        PrintedTable(
            f"{name}: errors, and MC-ETM's own ν (nominally {found['truncated']['nominal']:.3g} per sample)",
            (
                *("rung", "rows", *(f"error, {model}" for model in found["errors"])),
                *(f"{score} ÷ error" for score in found["expected"]),
                *("ν per sample", "ν, minimum"),
            ),
            tuple(
                (
                    rung,
                    f"{found['rows']['mean'][i]:.0f}",
                    *(_cell(error, i) for error in found["errors"].values()),
                    *(_cell(ratio, i) for ratio in found["expected"].values()),
                    *(_cell(found["truncated"][rule], i) for rule in ("per-sample", "minimum")),
                )
                for i, rung in enumerate(rungs)
            ),
        ),
    ]


def _cell(measure: dict[str, Any], i: int | None = None) -> str:
    mean, spread = measure["mean"], measure["std"]
    if i is not None:
        mean, spread = mean[i], None if spread is None else spread[i]
    return "–" if mean is None else cell(mean, spread)  # there was nothing to measure


def all_tables(results: dict[str, Any]) -> list[PrintedTable]:
    """The tables of every dataset."""
    return [
        table
        for name, found in results["datasets"].items()
        for table in tables(name, found, tuple(results["rates"]))
    ]


def show_energy_error(results: dict[str, Any], console: Console) -> None:
    """Print every table."""
    from rich.table import Table as Printed

    for table in all_tables(results):
        printed = Printed(title=table.title)
        for i, column in enumerate(table.columns):
            printed.add_column(column, justify="right" if i else "left")
        for row in table.rows:
            printed.add_row(*row)
        console.print(printed)


def write_tables(path: Path, results: dict[str, Any]) -> None:
    """Write every table as Markdown."""
    write_text(path, "\n".join(table.markdown() for table in all_tables(results)))

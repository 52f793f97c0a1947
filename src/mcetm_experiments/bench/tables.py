"""Benchmarks as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def show_benchmarks(results: dict[str, Any], console: Console) -> None:
    """One table for each: times with their spread, compilation apart, and what follows."""
    from rich.table import Table

    for name, found in results["benchmarks"].items():
        rows = found["rows"]
        figures = list(dict.fromkeys(key for row in rows for key in row.get("figures", {})))
        compiles = any(row.get("compile_seconds") is not None for row in rows)
        words = f"{name}, size {found['size']}: {results['device']}, {results['cores']} cores"
        notes = list(found["notes"])
        if found["not_begun"]:
            notes.append("Not begun in the time given (--seconds): " + ", ".join(found["not_begun"]) + ".")
        table = Table(title=words, caption="\n".join(notes) or None, caption_justify="left")
        table.add_column("work", overflow="fold")
        table.add_column("how", overflow="fold")
        for column in ("time", *(["compilation"] if compiles else []), *figures):
            table.add_column(column, justify="right")
        work = None
        for row in rows:
            first, work = row["work"] if row["work"] != work else "", row["work"]
            if "failure" in row:
                table.add_row(first, f"{row['variant']}: [red]{_plain(row['failure'])}[/red]")
                continue
            cells = [_time(row["seconds"])]
            if compiles:
                compiled = row["compile_seconds"]
                cells.append("" if compiled is None else f"{compiled:.1f} s")
            cells += [_figure(key, row["figures"].get(key)) for key in figures]
            table.add_row(first, row["variant"], *cells)
        console.print(table)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _time(seconds: dict[str, float]) -> str:
    """The median, and its quartiles where there are several times."""
    unit, factor = ("s", 1.0) if seconds["median"] >= 1.0 else ("ms", 1e3)
    short = lambda value: f"{factor * value:.3g}"  # noqa: E731
    if seconds["repeats"] == 1:
        return f"{short(seconds['median'])} {unit}"
    return f"{short(seconds['median'])} ({short(seconds['low'])}–{short(seconds['high'])}) {unit}"


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name.startswith("share"):
        return f"{100.0 * value:.2g} %"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

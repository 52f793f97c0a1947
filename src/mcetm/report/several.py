"""One page over several runs, and an index over a folder of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from mcetm.agents.regions import Regions
from mcetm.console import one_line
from mcetm.evaluation.comparison import Comparison
from mcetm.files import write_text
from mcetm.numbers import number, with_spread
from mcetm.report.compare import Grid, grids
from mcetm.report.estimates import shown
from mcetm.report.html import listed, page, section, table, text
from mcetm.report.lines import lines_figure
from mcetm.report.page import RunPage, learning_line, verdict_box
from mcetm.report.where import shares
from mcetm.tasks.datasets import source_name


def write_several(
    out: Path, runs: Sequence[RunPage], compared: Comparison | None, notes: Sequence[str]
) -> Path:
    """Write `report.html` and its figures into a folder.

    **Arguments:**

    - `out`: the folder.
    - `runs`: what each run's own page is made of; the title is what the run is called here.
    - `compared`: the runs that have numbers, side by side. None where none has.
    - `notes`: what the comparison leaves out.
    """
    boxes = "".join(verdict_box(run.verdict, heading=_heading(run)) for run in runs)
    title = f"{len(runs)} runs" if len(runs) > 1 else runs[0].title
    parts = [
        f"<h1>{text(title)}</h1>",
        f'<div class="side">{boxes}</div>',
        section("Side by side", "".join(map(_grid, () if compared is None else grids(compared))),
                listed([*(() if compared is None else compared.notes), *notes])),
        section("While they learned", _curves(out / "figures", runs)),
        section("Where they can be trusted", _trusted(runs)),
    ]  # fmt: skip
    path = out / "report.html"
    write_text(path, page(title, parts))
    return path


def _heading(run: RunPage) -> str:
    own = list(run.results["algorithms"])[-1]
    return f"<h2>{text(run.title)}</h2><p>{text(own)} on {text(source_name(run.results['dataset']))}</p>"


def _grid(grid: Grid) -> str:
    rows = [row for rows in grid.sections for row in rows]
    return f"<p>{text(grid.title)}</p>{table(grid.head, rows, words=grid.words)}"


def _curves(folder: Path, runs: Sequence[RunPage]) -> str:
    """A chart for each log, with the run's own algorithm as a line."""
    by_log: dict[str, list[RunPage]] = {}
    for run in runs:
        by_log.setdefault(source_name(run.results["dataset"]), []).append(run)
    parts = []
    for i, (log, some) in enumerate(by_log.items()):
        lines = [
            line
            for run in some
            if (line := learning_line(run.title, list(run.histories.values())[-1])) is not None
        ]
        if lines:
            words = f"{log}: return of each run's policy without noise while it learns; bands span the seeds."
            level = some[0].results["data_return"]
            parts.append(lines_figure(folder / f"learning-{i}", words, lines, up="return", level=level))
    return "".join(parts)


def _trusted(runs: Sequence[RunPage]) -> str:
    """How much is inside for each run, and which part of which column is trusted least."""
    rows = []
    for run in runs:
        inside, regions = run.findings.inside, run.findings.regions
        if not inside:
            rows.append((run.title, "nothing is known", "", ""))
            continue
        own = "" if regions is None or regions.visited_inside is None else f"{regions.visited_inside:.1%}"
        held = with_percent([one.policy for one in inside])
        rows.append((run.title, held, own, _least(regions)))
    head = ("", "inside, in held-out states", "in its own episodes", "column that is trusted least")
    return table(head, rows)


def with_percent(shares: Sequence[float]) -> str:
    """Shares of several policies as one: their range, where they differ."""
    low, high = f"{min(shares):.1%}", f"{max(shares):.1%}"
    return low if low == high else f"{low} to {high}"


def _least(regions: Regions | None) -> str:
    if regions is None or not regions.columns:
        return ""
    column = max(regions.columns, key=lambda one: (shares(one)[1], one.matters))
    bad = shares(column)[1]
    return (
        f"{column.name}: {bad:.0%} of its range is not" if bad else "all are trusted where there are states"
    )


@dataclass(frozen=True)
class Listed:
    """A run on an index."""

    name: str
    """Of its folder, beside the index."""
    what: str
    """Algorithm and log, or why it cannot be read."""
    page: RunPage | None = None
    unfinished: str = ""
    """Why there is no report yet."""


def write_index(folder: Path, runs: Sequence[Listed]) -> Path:
    """Write `index.html`: a line for each run, with a link to its report, those on one log together."""
    ready = [(run, run.page) for run in runs if run.page is not None]
    ready.sort(key=lambda each: (source_name(each[1].results["dataset"]), each[0].name))
    head = (
        "run",
        "algorithm",
        "log",
        "the log's return",
        "policies' return",
        "inside, held-out",
        "inside, own episodes",
    )
    top = "".join(f"<th{' class=words' if i < 3 else ''}>{words}</th>" for i, words in enumerate(head))
    body = "".join(_index_row(run, found) for run, found in ready)
    rest = [f"{run.name}: {run.unfinished or run.what}" for run in runs if run.page is None]
    title = f"Runs in {folder.resolve().name}"
    parts = [
        f"<h1>{text(title)}</h1>",
        f'<div class="wide"><table><thead><tr>{top}</tr></thead>{body}</table></div>' if ready else "",
        section("Not finished, or not to be read", listed(rest)),
    ]
    path = folder / "index.html"
    write_text(path, page(title, parts))
    return path


def _index_row(run: Listed, found: RunPage) -> str:
    results = found.results
    own = list(results["algorithms"])[-1]
    link = f'<a href="{quote(os.fsencode(run.name))}/report.html">{text(one_line(run.name))}</a>'
    inside, regions = found.findings.inside, found.findings.regions
    own_inside = None if regions is None else regions.visited_inside
    cells = [
        number(results["data_return"]),
        _return(found),
        with_percent([one.policy for one in inside]) if inside else "–",
        "–" if own_inside is None else f"{own_inside:.1%}",
    ]
    words = (link, text(own), text(source_name(results["dataset"])))
    return (
        "<tr>" + "".join(f'<td class="words">{cell}</td>' for cell in words)
        + "".join(f"<td>{text(cell)}</td>" for cell in cells) + "</tr>"
    )  # fmt: skip


def _return(found: RunPage) -> str:
    measured = list(found.results["algorithms"].values())[-1]
    if measured is not None:
        return with_spread(measured["returns"])
    values = [
        each.chosen.value
        for each in found.estimates
        if each.chosen is not None and each.chosen.value is not None
    ]
    if not values:
        return "not measured"
    believed = sum(each.believed for each in found.estimates)
    return f"{shown(float(np.mean(values)))} (estimated; {believed} of {len(found.estimates)} believed)"

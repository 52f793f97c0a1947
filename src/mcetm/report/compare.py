"""A comparison of runs as one table (terminal, CSV, Markdown, LaTeX) and one figure."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcetm.console import one_line, printable
from mcetm.evaluation.comparison import Comparison, Dataset, Summary
from mcetm.evaluation.statistics import Interval
from mcetm.numbers import decimals_of
from mcetm.report.figures import STYLES, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console

_NONE = "–"


@dataclass(frozen=True)
class Grid:
    """A table as text, before it takes the form of a terminal or of a file."""

    title: str
    head: tuple[str, ...]
    sections: tuple[tuple[tuple[str, ...], ...], ...]
    words: int = 1
    """How many columns, from the left, hold words and not numbers."""


def grids(comparison: Comparison) -> tuple[Grid, ...]:
    """The table, and the probabilities of improvement where there is more than one algorithm."""
    main = _main_grid(comparison)
    return (main, _improvement_grid(comparison)) if comparison.improvements else (main,)


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Print everything."""
    from rich.table import Table
    from rich.text import Text

    for grid in grids(comparison):
        console.print(Text(grid.title, style="bold"))
        table = Table()
        for i, name in enumerate(grid.head):
            # A name cut short could be another one's; numbers may take two lines.
            left = i < grid.words
            table.add_column(Text(name), justify="left" if left else "right", no_wrap=i == 0, overflow="fold")
        for section in grid.sections:
            for row in section:
                # An interval on a line of its own leaves room for more algorithms.
                table.add_row(*(Text(cell.replace(" [", "\n[")) for cell in row))
            table.add_section()
        console.print(table)
    for note in comparison.notes:
        console.print(Text(f"• {note}"))


def to_csv(comparison: Comparison) -> str:
    """One line for each algorithm and dataset, and for each algorithm's aggregate; numbers in full."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = ("mean", "mean_low", "mean_high", "std", "iqm", "iqm_low", "iqm_high")
    writer.writerow(("algorithm", "dataset", "measure", "runs", "seeds", "updates", *names))

    def write(algorithm: str, dataset: str, summary: Summary, seeds: str, updates: Sequence[int]) -> None:
        mean, iqm = summary.mean, summary.iqm
        numbers = (mean.value, mean.low, mean.high, summary.std, iqm.value, iqm.low, iqm.high)
        trained = " ".join(str(count) for count in updates)
        names = (_csv_name(algorithm), _csv_name(dataset), comparison.measure)
        writer.writerow((*names, summary.runs, seeds, trained, *numbers))

    for (algorithm, dataset), entry in comparison.entries.items():
        seeds = " ".join(str(seed) for seed in entry.seeds)
        write(algorithm, dataset, comparison.summaries[algorithm, dataset], seeds, entry.updates)
    for algorithm, summary in (comparison.aggregates or {}).items():
        if len(comparison.common) > 1:  # over one dataset it would be the same line again
            write(algorithm, "all in common", summary, "", comparison.updates_of(algorithm))
    return stream.getvalue()


def _csv_name(text: str) -> str:
    """A name as a spreadsheet shows it: one that begins like a formula would be computed."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def to_markdown(comparison: Comparison) -> str:
    """Tables for a README or a notebook."""
    parts = []
    for grid in grids(comparison):
        lines = [f"**{_markdown(grid.title)}**", "", _markdown_row(grid.head)]
        lines.append("|" + "---|" * grid.words + "---:|" * (len(grid.head) - grid.words))
        lines += [_markdown_row(row) for section in grid.sections for row in section]
        parts.append("\n".join(lines))
    if comparison.notes:
        parts.append("\n".join(f"- {_markdown(note)}" for note in comparison.notes))
    return "\n\n".join(parts) + "\n"


def to_latex(comparison: Comparison) -> str:
    """Tables for a paper: `tabular` with booktabs' rules; what must be known stands in comments."""
    notes = "".join(f"% {_words(note)}\n" for note in comparison.notes)
    parts = [notes + "% Needs \\usepackage{booktabs}."]
    for grid in grids(comparison):
        lines = [
            f"% {_words(grid.title)}",
            f"\\begin{{tabular}}{{{'l' * grid.words}{'r' * (len(grid.head) - grid.words)}}}",
            "\\toprule",
            " & ".join(_latex_head(cell) for cell in grid.head) + r" \\",
        ]
        for section in grid.sections:
            lines += ["\\midrule", *(" & ".join(_latex(cell) for cell in row) + r" \\" for row in section)]
        parts.append("\n".join([*lines, "\\bottomrule", "\\end{tabular}"]))
    return "\n\n".join(parts) + "\n"


def _main_grid(comparison: Comparison) -> Grid:
    """Datasets in rows, algorithms in columns, aggregates below."""
    score = comparison.measure == "score"
    counts = {len(entry.seeds) for entry in comparison.entries.values()}
    seeds = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
    spread = "mean ± spread over" if max(counts) > 1 else "with"
    words = f"{spread} {seeds} seed{'s' if max(counts) > 1 else ''}"
    number = _Number(comparison)
    rows = tuple(
        (
            dataset.name,
            number(comparison.convert(dataset, dataset.data_return)),
            *(
                _cell(comparison.summaries.get((name, dataset.name)), number)
                for name in comparison.algorithms
            ),
        )
        for dataset in comparison.datasets
    )
    below: list[tuple[str, ...]] = []
    if comparison.aggregates is not None:
        found = [comparison.aggregates[name] for name in comparison.algorithms]
        sure = " [95 %]" if any(summary.iqm.low is not None for summary in found) else ""
        words += _extent(comparison)
        below += [
            (f"mean{sure}", "", *(_with_interval(summary.mean, number) for summary in found)),
            (f"interquartile mean{sure}", "", *(_with_interval(summary.iqm, number) for summary in found)),
            ("runs", "", *(str(summary.runs) for summary in found)),
        ]
    trained = (_updates(comparison.updates_of(name)) for name in comparison.algorithms)
    below.append(("updates", "", *trained))
    title = "Normalised scores (0 random, 100 expert)" if score else "Returns"
    return Grid(f"{title}, {words}", ("", "the data", *comparison.algorithms), (rows, tuple(below)))


def _improvement_grid(comparison: Comparison) -> Grid:
    """Every pair once, the one that wins more often first."""
    names = comparison.algorithms
    rows = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            found = comparison.improvements[first, second]
            if found.value < 0.5:
                first_shown, second_shown = second, first
                found = comparison.improvements[second, first]
            else:
                first_shown, second_shown = first, second
            interval = _NONE if found.low is None else f"[{found.low:.2f}, {found.high:.2f}]"
            rows.append((first_shown, second_shown, f"{found.value:.2f}", interval))
    head = ("a run of", "beats one of", "probability", "95 % interval")
    return Grid("Probability of improvement, ties count half", head, (tuple(rows),), words=2)


class _Number:
    """Numbers of one comparison with the same number of decimals."""

    def __init__(self, comparison: Comparison) -> None:
        self.decimals = 1 if comparison.measure == "score" else _decimals(comparison)

    def __call__(self, value: float | None) -> str:
        if value is None:
            return _NONE
        return f"{round(float(value), self.decimals) + 0.0:,.{self.decimals}f}"  # no negative zero


def _decimals(comparison: Comparison) -> int:
    """Decimals that returns need: the more, the smaller they are."""
    found = list(comparison.summaries.values())
    if max(abs(summary.mean.value) for summary in found) >= 100:
        return 0
    return max(1, *(decimals_of(summary.mean.value, summary.std or None) for summary in found))


def _cell(summary: Summary | None, number: _Number) -> str:
    if summary is None:
        return _NONE
    return number(summary.mean.value) + ("" if summary.std is None else f" ± {number(summary.std)}")


def _with_interval(found: Interval, number: _Number) -> str:
    interval = "" if found.low is None else f" [{number(found.low)}, {number(found.high)}]"
    return number(found.value) + interval


def _updates(counts: Sequence[int]) -> str:
    if not counts:
        return _NONE
    return " to ".join(_short_count(count) for count in dict.fromkeys((counts[0], counts[-1])))


def _extent(comparison: Comparison) -> str:
    """What an aggregate is over, where that needs saying."""
    common, every = len(comparison.common), len(comparison.datasets)
    if every == 1:
        return ""
    return f"; below, over {common if common == every else f'{common} of {every}'} datasets"


def _words(text: str) -> str:
    """Text on one line: a new line in a name would end a row of a table, or a comment."""
    return " ".join(printable(text).split())


def _markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<\[\]])", r"\\\1", _words(text))


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_markdown(cell) for cell in cells) + " |"


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--",
}  # fmt: skip


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(character, character) for character in _words(text))
    # A minus, not a hyphen; and a bracket at the start of a row must not read as an option of \\.
    escaped = re.sub(r"(?<![\w-])-(?=\d)", "$-$", escaped)
    return f"{{{escaped}}}" if escaped.startswith("[") else escaped


def _latex_head(text: str) -> str:
    lines = textwrap.wrap(text, 16, break_long_words=False) or [""]
    if len(lines) == 1:
        return _latex(text)
    return r"\shortstack[r]{" + r"\\".join(_latex(line) for line in lines) + "}"


def draw_comparison(path: Path, comparison: Comparison) -> None:
    """Profile and interquartile means where there are aggregates, and learning curves of each dataset."""
    top = comparison.profiles is not None and comparison.aggregates is not None
    count = len(comparison.datasets)
    columns = {1: 1, 2: 2, 3: 3, 5: 3, 6: 3, 9: 3}.get(count, 4)
    rows = -(-count // columns)
    beside = top and count == 1  # one row of three panels
    heights = [2.1] * (top and not beside) + [2.1 if rows == 1 else 1.65 * rows]
    with figure(
        path, width=7.5 if top or count > 1 else 4.0, height=0.4 + sum(heights), formulas=False
    ) as drawn:
        parts = drawn.subfigures(
            1 if beside else len(heights),
            2 if beside else 1,
            squeeze=False,
            width_ratios=(2, 1) if beside else None,
            height_ratios=None if beside else heights,
        ).ravel()
        curves = parts[-1]
        if top:
            left, right = parts[0].subplots(1, 2)
            draw_profile(left, comparison)
            draw_interquartile(right, comparison)
        for i, dataset in enumerate(comparison.datasets):
            axis = curves.add_subplot(rows, columns, i + 1)
            _draw_learning(axis, comparison, dataset)
            title = f"{'(c) ' if top and i == 0 else ''}{one_line(dataset.name)}"
            axis.set_title(title, fontsize=8 if columns < 4 else 7)
            if i % columns == 0:
                axis.set_ylabel(_label(comparison), fontsize=8)
            if i + columns >= count:
                axis.set_xlabel("updates", fontsize=8)
            axis.tick_params(labelsize=7)
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], label=one_line(name), markersize=4, **style_of(comparison, name))
            for name in comparison.algorithms
        ]
        handles.append(Line2D([], [], label="the data", color="0.6", linewidth=1))
        # Names of very different length waste less room in fewer columns.
        across = 5 if max(len(name) for name in comparison.algorithms) < 20 else 3
        drawn.legend(
            handles=handles,
            loc="outside upper center",
            ncols=min(across if top or count > 1 else 2, len(handles)),
            fontsize=8,
            handlelength=3,
        )


def style_of(comparison: Comparison, name: str) -> dict[str, Any]:
    """A colour, dash and marker of its own; beyond the palette the dashes and markers move on."""
    i, size = comparison.algorithms.index(name), len(STYLES)
    other = STYLES[(i + i // size) % size]
    return {**STYLES[i % size], "linestyle": other["linestyle"], "marker": other["marker"]}


def _label(comparison: Comparison) -> str:
    return "normalised score" if comparison.measure == "score" else "return"


def draw_profile(axis: Axes, comparison: Comparison) -> None:
    """The share of runs above every score, one line for each algorithm."""
    for name, profile in (comparison.profiles or {}).items():
        style = {**style_of(comparison, name), "marker": None}
        axis.plot(profile.thresholds, profile.share, linewidth=1.4, **style)
        if profile.low is not None and profile.high is not None:
            axis.fill_between(
                profile.thresholds, profile.low, profile.high, color=style["color"], alpha=0.15, linewidth=0
            )
    axis.set(ylim=(-0.02, 1.02))
    axis.set_xlabel(f"{_label(comparison)} τ", fontsize=8)
    axis.set_ylabel("share of runs above τ", fontsize=8)
    axis.set_title("(a) performance profile", fontsize=8)
    axis.tick_params(labelsize=7)


def draw_interquartile(axis: Axes, comparison: Comparison) -> None:
    """Interquartile means with their intervals, one row for each algorithm."""
    found = comparison.aggregates or {}
    for i, (name, summary) in enumerate(found.items()):
        style = style_of(comparison, name)
        value, low, high = summary.iqm.value, summary.iqm.low, summary.iqm.high
        if low is not None and high is not None:
            axis.plot(
                [low, high], [i, i], color=style["color"], linewidth=7, alpha=0.3, solid_capstyle="butt"
            )
        axis.plot([value], [i], color=style["color"], marker=style["marker"], markersize=4)
    axis.set_yticks(range(len(found)), ["\n".join(textwrap.wrap(one_line(name), 18)) for name in found])
    axis.set_ylim(len(found) - 0.5, -0.5)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(_label(comparison), fontsize=8)
    sure = ", 95 % intervals" if any(summary.iqm.low is not None for summary in found.values()) else ""
    axis.set_title(f"(b) interquartile mean{sure}", fontsize=8)
    axis.tick_params(labelsize=7)


def _draw_learning(axis: Axes, comparison: Comparison, dataset: Dataset) -> None:
    """Mean over seeds with a band that spans them; a level line where only the end was measured."""
    for i, name in enumerate(comparison.algorithms):
        entry = comparison.entries.get((name, dataset.name))
        if entry is None:
            continue
        style = style_of(comparison, name)
        if entry.curve is None:
            final = comparison.convert(dataset, np.mean(entry.returns))
            axis.axhline(final, linewidth=1.2, **{**style, "marker": None})
            continue
        updates, values = entry.curve.updates, comparison.convert(dataset, entry.curve.returns)
        # A few markers on each line, not at the same places as those of the others.
        every = max(1, len(updates) // 6)
        axis.plot(
            updates,
            values.mean(axis=1),
            markersize=3,
            markevery=(i * every // len(comparison.algorithms), every),
            linewidth=1.2,
            **style,
        )
        if values.shape[1] > 1:
            low, high = values.min(axis=1), values.max(axis=1)
            axis.fill_between(updates, low, high, color=style["color"], alpha=0.15, linewidth=0)
    data = comparison.convert(dataset, dataset.data_return)
    axis.axhline(data, color="0.6", linewidth=1, zorder=1)
    axis.xaxis.set_major_formatter(_short_count)
    drawn = [comparison.entries.get((name, dataset.name)) for name in comparison.algorithms]
    if all(entry is None or entry.curve is None for entry in drawn):
        axis.set_xticks([])  # level lines have no updates to show


def _short_count(value: float, position: float = 0) -> str:
    """1500 as 1.5k and 2000000 as 2M; Matplotlib gives the position too."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"

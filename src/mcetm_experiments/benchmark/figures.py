"""The figures of a benchmark: what a table says at a glance, its learning curves, what online tries buy."""

from __future__ import annotations

import operator
from pathlib import Path

import numpy as np

from mcetm.report import (
    STYLES,
    draw_comparison,
    draw_interquartile,
    draw_profile,
    figure,
    legend_below,
    style_of,
)
from mcetm_experiments.benchmark.tables import Filled


def draw_table(out: Path, filled: Filled, tries: int) -> list[tuple[str, str]]:
    """All figures of a table, as far as it has what they show: names of files, and what they are."""
    comparison, name = filled.comparison, filled.table.name
    if comparison is None:
        return []
    drawn = []
    if filled.table.axis:
        drawn.append((f"{name}-axis", f"score by {filled.table.axis}, with 95 % intervals over seeds"))
        draw_axis(out / drawn[-1][0], filled)
    elif comparison.aggregates is not None and len(comparison.algorithms) > 1:
        drawn.append((f"{name}-summary", "interquartile means and performance profile"))
        draw_summary(out / drawn[-1][0], filled)
        drawn.append((f"{name}-tries", "score of the policy that is deployed after so many online episodes"))
        draw_tries(out / drawn[-1][0], filled, tries)
    drawn.append((f"{name}-curves", "learning curves of every log"))
    draw_comparison(out / drawn[-1][0], comparison)
    return drawn


def draw_summary(path: Path, filled: Filled) -> None:
    """The table at a glance."""
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to draw)
    height = max(2.2, 0.6 + 0.3 * len(comparison.algorithms))
    with figure(path, width=7.5, height=height, formulas=False) as drawn:
        left, right = drawn.subplots(1, 2)
        draw_interquartile(left, comparison)
        draw_profile(right, comparison)
        left.set_title("interquartile mean over logs and seeds, 95 % intervals", fontsize=8)
        right.set_title("performance profile: higher is better", fontsize=8)


def draw_tries(path: Path, filled: Filled, tries: int) -> None:
    """What is deployed after so many episodes in the real environment."""
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to draw)
    with figure(path, width=5.0, height=3.0, formulas=False) as drawn:
        axis = drawn.subplots()
        for name, curve in filled.bandits(tries).items():
            style = {**style_of(comparison, name), "marker": None}
            axis.plot(np.arange(1, len(curve) + 1), curve, label=name, linewidth=1.4, **style)
        axis.set(xscale="log", xlabel="online episodes", ylabel="score of the deployed policy")
        legend_below(drawn, [axis], ncols=3, fontsize=8)


def draw_axis(path: Path, filled: Filled) -> None:
    """Scores along a setting, one line for each log."""
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to draw)
    places = filled.places
    with figure(path, width=5.0, height=3.0, formulas=False) as drawn:
        axis = drawn.subplots()
        for i, dataset in enumerate(comparison.datasets):
            there = {
                places[label]: comparison.summaries[label, log].mean
                for label, log in comparison.entries
                if log == dataset.name
            }
            found = sorted(there.items(), key=operator.itemgetter(0))
            at = [place for place, _ in found]
            style = STYLES[i % len(STYLES)]
            axis.plot(
                at, [interval.value for _, interval in found], label=dataset.name, markersize=4, **style
            )
            sure = [(place, x.low, x.high) for place, x in found if x.low is not None and x.high is not None]
            if sure:
                place, low, high = zip(*sure, strict=True)
                axis.fill_between(place, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axis.set(xlabel=filled.table.axis, ylabel=comparison.measure)
        legend_below(drawn, [axis], ncols=3, fontsize=8)

"""Figures of scores against errors: the paper's, for every score, and how all of them fare on the ladder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.report import STYLES, figure, legend_below

_INSIDE, _OUTSIDE = STYLES[6]["color"], STYLES[1]["color"]
_FAMILIES = {
    "state noise": "state noise, spreads",
    "action noise": "action noise, half ranges",
    "level": "other levels",
    "rollout": "imagined steps",
}


def draw_scores(path: Path, piece: dict[str, Any], scores: Mapping[str, str]) -> None:
    """For every score: error against it, its values on and off the data with δ, errors on both sides of δ."""
    shown = {name: np.array(values) for name, values in piece["shown"].items()}
    inside = shown["rung"] == 0
    with figure(path, width=9.0, height=1.55 * len(scores) + 0.6) as drawn:
        axes = drawn.subplots(len(scores), 3, squeeze=False)
        for row, (name, model) in zip(axes, scores.items(), strict=True):
            score, error = shown[name], np.maximum(shown[model], 1e-6)
            delta = piece["scores"][name]["delta"]
            # A few rows far away would press all others together.
            low, high = np.quantile(score, [0.002, 0.985])
            low, high = min(low, delta), max(high, delta)
            room = 0.05 * (high - low) or 1.0
            low, high = low - room, high + room
            clipped = np.clip(score, low, high)
            _scatter(row[0], clipped, error, inside)
            row[0].axvline(delta, color="black", linewidth=1)
            label = "\n".join(name.split(" ", 1))
            row[0].set(yscale="log", ylabel=label, xlim=(low, high))
            edges = np.linspace(low, high, 40)
            row[1].axvline(delta, color="black", linewidth=1, label="$\\delta$")
            _histograms(row[1], edges, (clipped[inside], "held out"), (clipped[~inside], "off the data"))
            row[1].set(xlim=(low, high))
            ticks = np.geomspace(error.min(), error.max() * 1.001, 30)
            rejected = score > delta
            _histograms(row[2], ticks, (error[~rejected], "accepted"), (error[rejected], "truncated"))
            row[2].set(xscale="log")
            for axis in row[1:]:
                axis.set_yticks([])
        for axis, title in zip(
            axes[0],
            ("error against score", "score on and off the data", "error on both sides of $\\delta$"),
            strict=True,
        ):
            axis.set_title(title)
        for axis, label in zip(axes[-1], ("score", "score", "error"), strict=True):
            axis.set_xlabel(label)
        axes[0, 0].legend(fontsize=6, loc="lower right", markerscale=3)
        for axis in axes[0, 1:]:
            axis.legend(fontsize=6)


def _scatter(axis: Any, score: np.ndarray, error: np.ndarray, inside: np.ndarray) -> None:
    for rows, colour, label in ((~inside, _OUTSIDE, "off the data"), (inside, _INSIDE, "held out")):
        axis.scatter(
            score[rows], error[rows], s=3, alpha=0.5, color=colour, linewidths=0, label=label, rasterized=True
        )


def _histograms(axis: Any, edges: np.ndarray, *parts: tuple[np.ndarray, str]) -> None:
    """Each scaled to an area of its own: there are many more rows off the data."""
    for (values, label), colour in zip(parts, (_INSIDE, _OUTSIDE), strict=True):
        if len(values):
            weights = np.full(len(values), 1.0 / len(values))
            axis.hist(values, edges, weights=weights, color=colour, alpha=0.6, label=label)


def draw_ladder(path: Path, results: dict[str, Any], scores: Iterable[str]) -> None:
    """AUROC on every rung by family, and the error of what is accepted, for every score and dataset.

    `scores` are all there may be: each has its own style, whichever are missing.
    """
    datasets = results["datasets"]
    styles = list(zip(scores, STYLES, strict=True))
    with figure(path, width=11.0, height=2.5 * len(datasets) + 0.9) as drawn:
        axes = drawn.subplots(len(datasets), len(_FAMILIES) + 1, squeeze=False)
        for row, (name, found) in zip(axes, datasets.items(), strict=True):
            measured = found["scores"]
            shown = [(score, measured[score], style) for score, style in styles if score in measured]
            for axis, (family, label) in zip(row, _FAMILIES.items(), strict=False):
                places = [i for i, rung in enumerate(found["rungs"]) if rung["family"] == family]
                strengths = [_short(found["rungs"][i]["strength"]) for i in places]
                for score, numbers, style in shown:
                    measure = {
                        key: np.array(numbers["auroc"][key], float)[places] for key in ("mean", "seeds")
                    }
                    _draw(axis, np.arange(len(places)), measure, style, score)
                axis.axhline(0.5, color="0.7", linewidth=0.8)
                axis.set(ylim=(0.2, 1.03), xlabel=label)
                axis.set_xticks(np.arange(len(places)), strengths)
            for score, numbers, style in shown:
                risk = np.array(numbers["risk"]["seeds"], float)
                risk = risk / risk[-1]  # each seed by its own: their errors may differ widely
                measure = {"mean": risk.mean(axis=-1), "seeds": risk}
                _draw(row[-1], results["coverages"], measure, {**style, "marker": ""}, score)
            row[-1].set(xlabel="accepted share", ylabel="error ÷ that of all", ylim=(0.0, None))
            row[0].set_ylabel(f"{name}\nAUROC")
        legend_below(drawn, axes[:, 0], ncols=5, fontsize=8)


def _short(strength: float | str) -> str:
    """Of several words one on each line, so that levels fit beside each other."""
    return str(strength).replace("medium-", "m-\n").replace(" ", "\n")


def _draw(axis: Any, x: Any, measure: dict[str, Any], style: dict[str, Any], label: str) -> None:
    """Mean and range over seeds."""
    axis.plot(x, measure["mean"], markersize=4, linewidth=1.2, label=label, **style)
    seeds = measure["seeds"]
    axis.fill_between(x, seeds.min(axis=-1), seeds.max(axis=-1), color=style["color"], alpha=0.12)

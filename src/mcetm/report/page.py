"""The report of a run: one HTML page that needs nothing beside it."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.console import one_line
from mcetm.data.card import Card
from mcetm.files import write_text
from mcetm.numbers import number, numbers, with_spread
from mcetm.report.card import transitions_of
from mcetm.report.figures import STYLES, figure

_CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 }
td, th { padding: .3rem .8rem; border-bottom: 1px solid #ddd; text-align: right }
td:first-child, th:first-child { text-align: left }
img { max-width: 100% }
pre { background: #f5f5f5; padding: 1rem; overflow: auto }
figure { margin: 2rem 0 }
figcaption { color: #555 }
"""


def write_report(
    folder: Path,
    *,
    title: str,
    results: dict[str, Any],
    histories: dict[str, list[dict[str, Any]]],
    energies: np.ndarray | None,
    thresholds: np.ndarray | None,
    config: dict[str, Any],
    environment: dict[str, Any],
    log: Card | None = None,
) -> Path:
    """Draw the figures of a run and put them, its table and its settings on one page."""
    figures = folder / "figures"
    shown: list[tuple[str, str]] = []
    if any("return" in line for history in histories.values() for line in history):
        draw_learning(figures / "learning", histories, results["data_return"])
        shown.append(
            ("learning", "Return of the policy without noise while it learns; bands span the seeds.")
        )
    if energies is not None and thresholds is not None:
        draw_energies(figures / "energies", energies, thresholds)
        words = "Energies that each member's samples reach on held-out data, and its threshold δ."
        shown.append(("energies", words))
    own = list(histories)[-1]
    if any("q" in line for line in histories[own]):
        draw_signals(figures / "signals", histories[own])
        words = f"{own}: mean Q, the penalty before its weight, and the shares that are cut off."
        shown.append(("signals", words))
    parts = [f"<h1>{html.escape(title)}</h1>", _table(results), _diagnosis(results)]
    if log is not None:
        parts.append(_log(log))
    for name, words in shown:
        image = base64.b64encode((figures / f"{name}.png").read_bytes()).decode()
        source = f"data:image/png;base64,{image}"
        parts.append(
            f'<figure><img alt="{html.escape(words)}" src="{source}">'
            f"<figcaption>{html.escape(words)}</figcaption></figure>"
        )
    for heading, content in (("Settings", config), ("Environment", environment)):
        text = html.escape(json.dumps(content, indent=1))
        parts.append(f"<details><summary>{heading}</summary><pre>{text}</pre></details>")
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_CSS}</style><body>{''.join(parts)}</body></html>\n"
    )
    path = folder / "report.html"
    write_text(path, page)
    return path


def draw_learning(path: Path, histories: dict[str, list[dict[str, Any]]], data_return: float) -> None:
    """Returns over updates, one line for each algorithm."""
    with figure(path, width=7.0, height=3.6, formulas=False) as drawn:
        axis = drawn.subplots()
        for (name, history), style in zip(histories.items(), STYLES, strict=False):
            lines = [line for line in history if "return" in line]
            if not lines:
                continue
            steps = [line["step"] for line in lines]
            returns = np.array([np.atleast_1d(line["return"]) for line in lines])
            axis.plot(steps, returns.mean(axis=1), label=one_line(name), markersize=4, **style)
            axis.fill_between(
                steps, returns.min(axis=1), returns.max(axis=1), color=style["color"], alpha=0.15
            )
        axis.axhline(data_return, color="0.5", linewidth=1, label="the data's own mean")
        axis.set(xlabel="updates", ylabel="return")
        axis.legend(fontsize=8)


def draw_energies(path: Path, energies: np.ndarray, thresholds: np.ndarray) -> None:
    """Histograms by member, with the threshold of each."""
    with figure(path, width=7.0, height=2.8) as drawn:  # powers on its axis are formulas; it has no names
        axes = np.atleast_1d(drawn.subplots(1, len(energies), sharey=True))
        for i, (axis, values, threshold) in enumerate(zip(axes, energies, thresholds, strict=True)):
            axis.hist(values, bins=60, color="#56B4E9", log=True)
            axis.axvline(threshold, color="#D55E00", linestyle="--", label="δ")
            axis.set(xlabel="energy E", title=f"member {i}")
        axes[0].set(ylabel="held-out samples")
        axes[0].legend()


def draw_signals(path: Path, history: list[dict[str, Any]]) -> None:
    """What the critic and the safety measures did over training."""
    panels = (
        (("q", "target"), "value"),
        (("spread", "uncertainty"), "penalty"),
        (("truncated", "rollout_truncated", "rollout_terminated"), "share"),
    )
    with figure(path, width=9.0, height=2.8, formulas=False) as drawn:
        for axis, (names, label) in zip(drawn.subplots(1, 3), panels, strict=True):
            for name, style in zip(names, STYLES, strict=False):
                lines = [line for line in history if name in line]
                if lines:
                    steps, values = zip(*((line["step"], np.mean(line[name])) for line in lines), strict=True)
                    axis.plot(steps, values, label=name.replace("_", " "), markevery=4, markersize=4, **style)
            axis.set(xlabel="updates", ylabel=label)
            if axis.lines:
                axis.legend(fontsize=8)


def _log(card: Card) -> str:
    """What the run learned from, and what about it should make its reader careful."""
    metadata = card.metadata
    ends = f"{card.episodes:,}, {card.terminations:,} terminated and {card.truncations:,} truncated"
    rows = [("source", metadata.source), ("transitions", transitions_of(card)), ("episodes", ends)]
    for field, names in (("observations", metadata.obs_names), ("actions", metadata.action_names)):
        if names is not None:
            rows.append((field, ", ".join(names)))
    if metadata.reward_name is not None:
        rows.append(("reward", metadata.reward_name))
    cells = "".join(f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>" for a, b in rows)
    known = "".join(f"<li>{html.escape(one_line(words, 1000))}</li>" for words in card.warnings)
    return f"<h2>The log</h2><table>{cells}</table>" + (
        f"<p>Worth knowing:</p><ul>{known}</ul>" if known else ""
    )


_DIAGNOSIS = (
    ("value Q", "q"),
    ("what really followed", "return_to_go"),
    ("model error", "error"),
    ("… on held-out data", "held_out_error"),
    ("cut off", "truncated"),
    ("… on held-out data", "held_out_truncated"),
    ("spread of values", "penalty"),
    ("… on held-out data", "held_out_penalty"),
)


def _diagnosis(results: dict[str, Any]) -> str:
    """Where the finished policies go: what the critic believes of it, and what the model knows."""
    rows = [
        (name, [_mean(found["diagnosis"].get(key)) for _, key in _DIAGNOSIS])
        for name, found in results["algorithms"].items()
        if found is not None and found["diagnosis"] is not None
    ]
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(words)}</th>" for words, _ in _DIAGNOSIS)
    body = "".join(
        f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, cells in rows
    )
    return (
        "<h2>Where the policies go</h2><p>Means over the states that the finished policies visit, and seeds: "
        "the critic's value against the discounted return that followed, the model's one-step error, how "
        f"often it is not trusted, and the spread of values over its members.</p><table><tr><th></th>{head}"
        f"</tr>{body}</table>"
    )


def _mean(seeds: list[float] | None) -> str:
    return "" if seeds is None else number(float(np.mean(seeds)))


def _table(results: dict[str, Any]) -> str:
    measured = {name: found for name, found in results["algorithms"].items() if found is not None}
    rows = [("the data", number(results["data_return"]), "", "")]
    for name, found in measured.items():
        score = "" if found["score"] is None else f"{found['score']:.1f}"
        rows.append((name, with_spread(found["returns"]), score, ", ".join(numbers(found["returns"]))))
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    table = f"<table><tr><th></th><th>return</th><th>score</th><th>seeds</th></tr>{body}</table>"
    missing = "" if measured else "<p>The policies' returns were not measured: there is no environment.</p>"
    return table + missing

"""The report of a run: one HTML page that needs nothing beside it, with the verdict on its first screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.data.card import Card
from mcetm.estimates import Estimates, PolicyEstimates
from mcetm.files import write_text
from mcetm.numbers import number, numbers, with_spread
from mcetm.report.accuracy import accuracy_part
from mcetm.report.card import transitions_of
from mcetm.report.drawn import draw_energies
from mcetm.report.estimates import cells_of, draw_estimates, reasons
from mcetm.report.findings import Findings
from mcetm.report.html import folded, listed, page, picture, section, table, text
from mcetm.report.lines import Line, lines_figure
from mcetm.report.verdict import Verdict, verdict_of
from mcetm.report.where import where


@dataclass(frozen=True)
class RunPage:
    """All that the page of a run is made of."""

    folder: Path
    title: str
    results: dict[str, Any]
    histories: dict[str, list[dict[str, Any]]]
    """Metrics of each algorithm, the run's own last."""
    config: dict[str, Any]
    environment: dict[str, Any]
    card: Card | None = None
    findings: Findings = field(default_factory=Findings)
    estimates: tuple[PolicyEstimates, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What it says on its first screen."""
        regions = self.findings.regions
        own = None if regions is None else regions.visited_inside
        return verdict_of(self.results, self.findings.inside, str(self.folder), self.estimates, own)


def write_report(run: RunPage) -> Path:
    """Draw the figures of a run, and put everything on one page in its folder."""
    figures, findings = run.folder / "figures", run.findings
    own = list(run.histories)[-1]
    regions = findings.regions
    settings = folded("Settings", run.config), folded("Environment", run.environment)
    parts = [
        f"<h1>{text(run.title)}</h1>",
        verdict_box(run.verdict),
        section("Where it can be trusted", "" if regions is None else where(regions)),
        section("Returns", _returns(run.results)),
        section("Estimates from the log alone", _estimates(figures / "estimates", run.estimates)),
        section("The log", "" if run.card is None else _log(run.card)),
        section("How well the model predicts", _accuracy(figures / "accuracy", findings)),
        section("While it learned", _learning(figures / "learning", run.histories, run.results)),
        section(f"Signals of {own}", _signals(figures, run.histories[own])),
        section("Where the policies go", _diagnosis(run.results)),
        section("The model's energies", _energies(figures / "energies", findings)),
        f'<div class="screen">{section("Settings and environment", *settings)}</div>',
    ]
    path = run.folder / "report.html"
    write_text(path, page(run.title, parts))
    return path


def verdict_box(verdict: Verdict, *, heading: str = "") -> str:
    """The verdict, with a colour at its side where something is known."""
    parts = [] if not heading else [heading]
    level = "h3" if heading else "h2"
    for words, sentences in (
        ("What it earns", verdict.earns),
        ("How far it can be trusted", verdict.trusted),
        ("What to do next", verdict.next),
    ):
        if sentences:
            said = "".join(f"<p>{text(sentence)}</p>" for sentence in sentences)
            parts.append(f"<{level}>{words}</{level}>{said}")
    tone = {True: " good", False: " bad", None: ""}[verdict.good]
    return f'<section class="verdict{tone}">{"".join(parts)}</section>'


def _returns(results: dict[str, Any]) -> str:
    """What was measured; nothing where nothing was, as the verdict says so already."""
    measured = {name: found for name, found in results["algorithms"].items() if found is not None}
    if not measured:
        return ""
    scored = any(found["score"] is not None for found in measured.values())
    rows = [["the log", number(results["data_return"]), *([""] * scored), ""]]
    for name, found in measured.items():
        score = [] if not scored else ["" if found["score"] is None else f"{found['score']:.1f}"]
        rows.append([name, with_spread(found["returns"]), *score, ", ".join(numbers(found["returns"]))])
    return table(("", "return", *(["score"] * scored), "of each seed"), rows)


def _estimates(path: Path, found: Sequence[PolicyEstimates]) -> str:
    if not found:
        return ""
    first = found[0].of[0]
    rows = [
        (each.policy if i == 0 else "", one.label, *cells_of(one))
        for each in found
        for i, one in enumerate(each.of)
    ]
    draw_estimates(path, [Estimates(tuple(found), first.log, first.log_return, first.quantity)])
    words = "Every estimate with its 90 % interval; a filled mark is believed, an empty one is not."
    said = f"{first.quantity[:1].upper()}{first.quantity[1:]}; from {first.log}, whose own episodes earned "
    return (
        f"<p>{text(said)}{number(first.log_return)}.</p>"
        + table(("policy", "estimator", "estimate", "90 % interval", "believed"), rows, words=2)
        + listed(reasons(found))
        + picture(path, words)
    )


def _learning(path: Path, histories: dict[str, list[dict[str, Any]]], results: dict[str, Any]) -> str:
    lines = [line for name, history in histories.items() if (line := learning_line(name, history))]
    words = "Return of the policy without noise while it learns; bands span the seeds."
    if not lines:
        return ""
    return lines_figure(path, words, lines, up="return", level=results["data_return"])


def learning_line(name: str, history: Sequence[dict[str, Any]]) -> Line | None:
    """Returns over updates; None where they were not measured on the way."""
    lines = [line for line in history if "return" in line]
    if not lines:
        return None
    values = np.array([np.atleast_1d(line["return"]) for line in lines], float)
    return Line.of_seeds(name, [line["step"] for line in lines], values)


_PANELS = (
    (("q", "target"), "value", "Mean Q of the critics, and the targets they learn."),
    (("spread", "uncertainty"), "penalty", "The penalty before its weight."),
    (("truncated", "rollout_truncated", "rollout_terminated"), "share", "Shares of steps that are cut off."),
)


def _signals(figures: Path, history: Sequence[dict[str, Any]]) -> str:
    """What the critic and the safety measures did over training."""
    found = []
    for names, label, words in _PANELS:
        lines = []
        for name in names:
            rows = [line for line in history if name in line]
            if rows:
                values = np.array([[np.mean(line[name])] for line in rows], float)
                steps = [line["step"] for line in rows]
                lines.append(Line.of_seeds(name.replace("_", " "), steps, values))
        if lines:
            found.append(lines_figure(figures / f"signals-{label}", words, lines, up=label))
    return f'<div class="where">{"".join(found)}</div>' if found else ""


def _energies(path: Path, findings: Findings) -> str:
    if not findings.energies:
        return ""
    draw_energies(path, findings.energies)
    return picture(path, "Energies that each member's samples reach on held-out data, and its threshold δ.")


def _accuracy(path: Path, findings: Findings) -> str:
    return "" if findings.accuracy is None else accuracy_part(path, findings.accuracy)


def _log(card: Card) -> str:
    """What the run learned from, and what about it should make its reader careful."""
    metadata = card.metadata
    ends = f"{card.episodes:,}, {card.terminations:,} terminated and {card.truncations:,} truncated"
    rows = [("source", metadata.source), ("transitions", transitions_of(card)), ("episodes", ends)]
    if card.returns is not None:
        spread = f"{number(card.returns.minimum)} to {number(card.returns.maximum)}"
        rows.append(("their returns", f"{number(card.returns.mean)} on average, {spread}"))
    for named, names in (("observations", metadata.obs_names), ("actions", metadata.action_names)):
        if names is not None:
            rows.append((named, ", ".join(names)))
    if metadata.reward_name is not None:
        rows.append(("reward", metadata.reward_name))
    known = f"<p>Worth knowing:</p>{listed(card.warnings)}" if card.warnings else ""
    return table((), rows, words=2) + known


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
        (name, *(_mean(found["diagnosis"].get(key)) for _, key in _DIAGNOSIS))
        for name, found in results["algorithms"].items()
        if found is not None and found["diagnosis"] is not None
    ]
    if not rows:
        return ""
    words = (
        "Means over the states that the finished policies visit, and seeds: the critic's value against the "
        "discounted return that followed, the model's one-step error, how often it is not trusted, and the "
        "spread of values over its members."
    )
    return f"<p>{text(words)}</p>" + table(("", *(said for said, _ in _DIAGNOSIS)), rows)


def _mean(seeds: list[float] | None) -> str:
    return "" if seeds is None else number(float(np.mean(seeds)))

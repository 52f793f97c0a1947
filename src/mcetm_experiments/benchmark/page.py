"""The page of a benchmark: one table and one figure first, everything else below, from files alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mcetm.evaluation import Summary
from mcetm.pipeline import Cell, CellResult
from mcetm_experiments.benchmark.figures import draw_table
from mcetm_experiments.benchmark.plan import BenchmarkPlan
from mcetm_experiments.benchmark.tables import Filled

PAGE = "benchmark.md"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table whose first columns hold words, and the others numbers."""
    lines = [head, *rows]
    text = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    text.insert(1, "|" + "---|" * words + "---:|" * (len(head) - words))
    return "\n".join(text)


def number(value: float) -> str:
    """With the digits that a reader needs."""
    return f"{value:,.1f}" if abs(value) >= 1.0 else f"{value:.2g}"


def write_page(
    out: Path,
    plan: BenchmarkPlan,
    tables: Sequence[Filled],
    results: Sequence[CellResult],
    failures: Mapping[tuple[str, str], str],
) -> str:
    """All figures, and the page as text; `failures` are sentences by key and log of a cell."""
    parts = [f"# {plan.title}"]
    for filled in tables:
        parts.append(f"## {filled.table.title}")
        if filled.table.about:
            parts.append(filled.table.about)
        if filled.comparison is None:
            parts.append("Nothing of this table was run yet.")
            continue
        parts += [_scores(filled), *_notes(filled)]
        for file, what in draw_table(out, filled, plan.tries):
            parts.append(f"![{filled.table.title}: {what}]({file}.png)")
        parts += _details(plan, filled)
    parts += [*_protocol(plan, tables), *_missing(tables, failures), *_made_with(results)]
    return "\n\n".join(parts) + "\n"


def _scores(filled: Filled) -> str:
    """Logs in rows, systems in columns: mean and spread over seeds; blank where nothing was run."""
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to show)
    rows = [
        (log, *(_mean(comparison.summaries.get((label, log))) for label in filled.labels))
        for log in filled.logs
    ]
    if comparison.aggregates is not None and len(comparison.common) > 1:
        some = "" if len(comparison.common) == len(filled.logs) else f" of {len(comparison.common)} logs"
        summaries = [comparison.aggregates.get(label) for label in filled.labels]
        rows.append(
            (f"**mean**{some}", *("" if s is None else f"**{number(s.mean.value)}**" for s in summaries))
        )
        rows.append((f"interquartile mean{some}", *(_sure(summary) for summary in summaries)))
    return markdown_table(("", *filled.labels), rows)


def _mean(summary: Summary | None) -> str:
    if summary is None:
        return ""
    return number(summary.mean.value) + ("" if summary.std is None else f" ± {number(summary.std)}")


def _sure(summary: Summary | None) -> str:
    if summary is None:
        return ""
    iqm = summary.iqm
    if iqm.low is None or iqm.high is None:
        return number(iqm.value)
    return f"{number(iqm.value)} [{number(iqm.low)}, {number(iqm.high)}]"


def _notes(filled: Filled) -> list[str]:
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to show)
    kind = "Normalised scores" if comparison.measure == "score" else "Returns"
    first = f"{kind} of the last policy: mean ± spread over seeds; [95 % interval]. A blank was not run."
    about_logs = sorted({note for found in filled.results.values() for cell in found for note in cell.notes})
    substitutes = [
        log
        for log in filled.logs
        if any(
            "substitute" in note for (_, at), f in filled.results.items() if at == log for note in f[0].notes
        )
    ]
    notes = [first, *comparison.notes]
    if substitutes:
        notes.append(f"Substitutes for D4RL's logs of these names: {', '.join(substitutes)}.")
    notes += [note for note in about_logs if "substitute" not in note]
    return ["\n".join(f"- {note}" for note in notes)]


def _improvements(filled: Filled) -> list[str]:
    """How likely a run of the table's first system beats one of each other."""
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to show)
    first = comparison.algorithms[0]
    rows = []
    for other in comparison.algorithms[1:]:
        found = comparison.improvements[first, other]
        sure = "" if found.low is None else f"[{found.low:.2f}, {found.high:.2f}]"
        rows.append((other, f"{found.value:.2f}", sure))
    return [
        f"**How likely a run of {first} beats one of another system** on the same log; ties count half:",
        markdown_table(("another system", "probability", "95 % interval"), rows),
    ]


def _details(plan: BenchmarkPlan, filled: Filled) -> list[str]:
    """Everything that is not needed in the first minute."""
    comparison = filled.comparison
    assert comparison is not None  # noqa: S101 (there is something to show)
    parts = []
    if comparison.improvements:
        parts += _improvements(filled)
    worst = filled.worst(plan.worst_after)
    if worst:
        rows = [
            (log, *(number(worst[label, log]) if (label, log) in worst else "" for label in filled.labels))
            for log in filled.logs
        ]
        parts += [
            f"**The worst evaluation after {plan.worst_after:,} updates**, mean over seeds: a large fall "
            "from the table above is luck in when training was stopped.",
            markdown_table(("", *filled.labels), rows),
        ]
    bandits, best = filled.bandits(plan.tries), filled.best_of()
    if bandits:
        at = [count for count in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if count <= plan.tries]
        rows = [(name, *(number(curve[count - 1]) for count in at)) for name, curve in bandits.items()]
        parts += [
            "**What online tries buy**: a UCB bandit chooses which seed's policy has the next episode; the "
            "one with the best mean so far is deployed. Score after so many episodes:",
            markdown_table(("", *(str(count) for count in at)), rows),
        ]
        most = max(len(curve) for curve in best.values())
        rows = [
            (name, *(number(curve[k]) if k < len(curve) else "" for k in range(most)))
            for name, curve in best.items()
        ]
        parts += [
            "**The best of so many policies**, each measured well (expected online performance):",
            markdown_table(("", *(str(k + 1) for k in range(most))), rows),
        ]
    if filled.table.published and plan.published is not None:
        parts += _published(plan, filled)
    took = filled.seconds()
    parts += [
        "**Seconds of one cell**, world included, median; cells may have shared a device:",
        markdown_table(tuple(took), [tuple(f"{seconds:,.0f}" for seconds in took.values())], words=0),
    ]
    return parts


def _published(plan: BenchmarkPlan, filled: Filled) -> list[str]:
    comparison, published = filled.comparison, plan.published
    assert comparison is not None  # noqa: S101 (there is something to show)
    assert published is not None  # noqa: S101 (asked before)
    labels = [label for label in filled.labels if label in published.scores]
    if not labels:
        return []
    head = [name for label in labels for name in (label, "published")]
    rows = []
    for log in filled.logs:
        cells = []
        for label in labels:
            other = published.of(label, log)
            cells += [_mean(comparison.summaries.get((label, log))), "" if other is None else number(other)]
        rows.append((log, *cells))
    return [f"**Beside what was published** ({published.source}):", markdown_table(("", *head), rows)]


def _protocol(plan: BenchmarkPlan, tables: Sequence[Filled]) -> list[str]:
    found = [cell for filled in tables for cells in filled.results.values() for cell in cells]
    seeds = sorted({seed for cell in found for seed in cell.seeds})
    lines = [
        f"The last policy of each seed is measured, over {plan.episodes} episodes; no policy is chosen by "
        "its true return.",
        "Seeds that share a world (transition model, reward, trust region) are not independent: intervals "
        "draw worlds first, and seeds within them.",
        "Interquartile means, probabilities of improvement and profiles are those of Agarwal et al. (2021).",
    ]
    if seeds:
        lines.insert(1, f"Seeds: {', '.join(str(seed) for seed in seeds)}.")
    rows = []
    for filled in tables:
        for label in filled.labels:
            system = next(
                (s for s in filled.table.systems if s.label == label or (s.label is None and s.tuned)), None
            )
            updates = sorted({c.updates for (own, _), f in filled.results.items() if own == label for c in f})
            said = "" if system is None else "; ".join(filter(None, (", ".join(system.set), system.tuned)))
            shown = ", ".join(f"{count:,}" for count in updates)
            rows.append((filled.table.title, label, shown, said or f"preset `{plan.preset}`"))
    return [
        "## Protocol",
        "\n".join(f"- {line}" for line in lines),
        "Which settings each system had; every cell's file has all of them:",
        markdown_table(("table", "system", "updates", "settings"), rows, words=4),
    ]


def _missing(tables: Sequence[Filled], failures: Mapping[tuple[str, str], str]) -> list[str]:
    cells: list[Cell] = [one.cell for filled in tables for one in filled.missing]
    if not cells:
        return []
    reasons = {
        f"{cell.log}, {cell.config.label}, seed {cell.config.seed}": failures[cell.key, cell.log]
        for cell in cells
        if (cell.key, cell.log) in failures
    }
    rows = []
    for filled in tables:
        if filled.missing:
            all_cells = len(filled.missing) + sum(len(found) for found in filled.results.values())
            rows.append((filled.table.title, f"{len(filled.missing)} of {all_cells}"))
    parts = ["## What was not run", markdown_table(("table", "cells not run"), rows)]
    if reasons:
        parts += ["These have failed:", "\n".join(f"- {who}: {why}" for who, why in reasons.items())]
    return parts


def _made_with(results: Sequence[CellResult]) -> list[str]:
    if not results:
        return []

    def all_of(values: Iterable[object]) -> str:
        return ", ".join(sorted({str(value) for value in values}))

    machines = [result.environment for result in results]
    lines = [
        f"{len(results)} cells, {sum(len(result.seeds) for result in results)} trained policies.",
        f"Devices: {all_of(machine.get('device') for machine in machines)}.",
        f"Commits: {all_of(machine.get('commit') for machine in machines)}.",
    ]
    versions = [machine.get("versions") or {} for machine in machines]
    lines += [
        f"{package}: {all_of(version.get(package) for version in versions)}."
        for package in ("mcetm", "jax", "mujoco")
    ]
    return ["## Made with", "\n".join(f"- {line}" for line in lines)]

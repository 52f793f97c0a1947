"""The dataset card on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mcetm.data.card import Card, ColumnRanges, ColumnSummary
from mcetm.data.transitions import Metadata

_BLOCKS = " ▁▂▃▄▅▆▇█"
_MOST_COLUMNS = 24


def show_card(card: Card, console: Console) -> None:
    """Print a card."""
    console.print(_facts(card))
    for name, columns in (("obs", card.obs), ("action", card.action)):
        if columns.minimum:
            console.print(_ranges(name, columns, card.metadata))
    if card.warnings:
        lines = Group(*(Text(f"• {warning}", style="yellow") for warning in card.warnings))
        console.print(Panel(lines, title="worth knowing", title_align="left", border_style="yellow"))


def _facts(card: Card) -> RenderableType:
    metadata = card.metadata
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def row(name: str, value: str) -> None:
        table.add_row(name, value)

    row("source", metadata.source)
    row("task", metadata.task or "unknown")
    if metadata.provenance:
        row("origin", _origin(metadata.provenance))
    row("transitions", transitions_of(card))
    row("episodes", f"{card.episodes:,}, {card.terminations:,} terminated and {card.truncations:,} truncated")
    row("  length", _summary(card.lengths))
    if card.returns is not None:
        row("  return", _summary(card.returns))
    if card.normalized_score is not None:
        mean, spread = (round(value, 1) + 0.0 for value in card.normalized_score)  # no negative zero
        row("  score", f"{mean:.1f} ± {spread:.1f} (0 = random, 100 = expert)")
    if card.reward is not None:
        called = "" if metadata.reward_name is None else f"'{metadata.reward_name}': "
        row("reward", called + _summary(card.reward))
    row("observation", f"{len(card.obs.minimum)} numbers{_intrinsic(card)}")
    row("action", _action(card))
    row("continuity", _continuity(card))
    row("checksum", card.checksum[:16])
    return Panel(table, title="dataset card", title_align="left")


def transitions_of(card: Card) -> str:
    """How many there are, and what became of rows that do not say what came after."""
    kept = f", {card.without_next:,} of them without a next observation" if card.without_next else ""
    lost = f" ({card.metadata.dropped:,} dropped)" if card.metadata.dropped else ""
    return f"{card.transitions:,}{kept}{lost}"


def _origin(provenance: Mapping[str, Any]) -> str:
    """Who collected the data, as far as it is recorded."""
    words = []
    if environment := provenance.get("environment"):
        words.append(f"collected in {environment}")
    if policies := _policies(provenance):
        shown = ", ".join(policies[:3]) + (f" and {len(policies) - 3} more" if len(policies) > 3 else "")
        words.append(f"by {shown}")
    if "seed" in provenance:
        words.append(f"seed {provenance['seed']}")
    if note := provenance.get("note"):
        words.append(str(note))
    return "; ".join(words) or ", ".join(f"{name} {value}" for name, value in provenance.items())


def _policies(provenance: Mapping[str, Any]) -> list[str]:
    """Who acted, each once; a file of another maker may say it in a way of its own, or not at all."""
    shares = provenance.get("shares")
    named = (
        [share.get("policies") for share in shares if isinstance(share, dict)]
        if isinstance(shares, list)
        else []
    )
    return list(dict.fromkeys(str(name) for names in named if isinstance(names, list) for name in names))


def _summary(summary: ColumnSummary) -> str:
    spread = f"{_number(summary.mean)} ± {_number(summary.std)}"
    if summary.minimum == summary.maximum:
        return f"{_number(summary.mean)} throughout"
    return f"{spread}   {_number(summary.minimum)} {histogram(summary.histogram)} {_number(summary.maximum)}"


def histogram(counts: tuple[int, ...]) -> str:
    """Counts as a line of block characters; the smallest non-zero count is still visible."""
    top = max(counts)
    return "".join(_BLOCKS[0 if c == 0 else max(1, round(8 * c / top))] for c in counts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:.3g}"


def _intrinsic(card: Card) -> str:
    if card.intrinsic is None:
        return ", too few distinct rows to estimate their intrinsic dimension"
    return f", intrinsic dimension about {card.intrinsic.estimate:.1f} ± {card.intrinsic.spread:.1f} (TwoNN)"


def _action(card: Card) -> str:
    width = len(card.action.minimum)
    if not width:
        return "none"
    low, high = card.metadata.action_low, card.metadata.action_high
    if low is None or high is None:
        bounds = "bounds unknown"
    elif len(set(low)) == len(set(high)) == 1:
        bounds = f"each in [{low[0]:g}, {high[0]:g}]"
    else:
        bounds = "bounds differ between components"
    saturated = "" if card.saturated is None else f", {card.saturated:.1%} at a bound"
    return f"{width} number{'s' if width > 1 else ''}, {bounds}{saturated}"


def _continuity(card: Card) -> str:
    continuity = card.continuity
    if not continuity.broken:
        return f"next_obs continues in the following row at all {continuity.checked:,} places inside episodes"
    return f"broken at {continuity.broken:,} of {continuity.checked:,} places inside episodes"


def _ranges(name: str, columns: ColumnRanges, metadata: Metadata) -> RenderableType:
    table = Table(title=f"{name} columns", title_justify="left", box=None, padding=(0, 1), title_style="bold")
    for heading in ("", "min", "max", "mean", "std", ""):
        table.add_column(heading, justify="right", overflow="fold")
    called = lambda i: metadata.name_of(name, i) or str(i)  # noqa: E731
    repeated = {j: i for i, j in columns.duplicates}
    width = len(columns.minimum)
    for i in range(min(width, _MOST_COLUMNS)):
        values = (columns.minimum[i], columns.maximum[i], columns.mean[i], columns.std[i])
        repeats = f"repeats {called(repeated[i])}" if i in repeated else ""
        remark = "constant" if i in columns.constant else repeats
        table.add_row(Text(called(i)), *(f"{value:.3g}" for value in values), remark)
    if width > _MOST_COLUMNS:
        table.add_row("…", *[""] * 4, f"{width - _MOST_COLUMNS} more (--json shows all)")
    return table

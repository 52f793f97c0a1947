"""Estimates of returns as a table and a figure: every estimator beside the others, nothing averaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcetm.console import one_line
from mcetm.estimates import LABELS, Choice, EpisodePlan, Estimate, Estimates, PolicyEstimates
from mcetm.report.figures import STYLES, figure, legend_below

if TYPE_CHECKING:
    from rich.console import Console


def show_estimates(found: Estimates, console: Console) -> None:
    """Print a line for each policy and estimator, and below it what to think of each policy."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"{found.log}: {found.quantity}", style="bold"))
    table = Table()
    for name in ("policy", "estimator"):
        table.add_column(name, overflow="fold")
    table.add_column("estimate", justify="right")
    table.add_column("90 % interval", justify="right")
    table.add_column("believed", justify="left")
    for each in found.of_policies:
        for i, one in enumerate(each.of):
            table.add_row(Text(each.policy if i == 0 else ""), one.label, *cells_of(one))
        table.add_section()
    table.add_row("the log's own", "measured", shown(found.log_return), "", "")
    console.print(table)
    for each in found.of_policies:
        console.print(Text(f"{each.policy} is {each.verdict}"))
    for reason in reasons(found.of_policies):
        console.print(Text(f"• {reason}"))


def cells_of(one: Estimate) -> tuple[str, str, str]:
    """An estimate in a table: number, interval, and whether it is believed."""
    if one.value is None or one.interval is None:
        return "–", "–", "refused"
    low, high = one.interval
    return shown(one.value), f"[{shown(low)}, {shown(high)}]", "yes" if one.believed else "no"


def reasons(policies: Sequence[PolicyEstimates]) -> list[str]:
    """Why estimates are not believed; a reason that several share is said once."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in policies:
        for one in each.of:
            for reason in () if one.believed else one.reasons:
                by_reason.setdefault((one.label, reason), []).append(each.policy)
    return [f"{label}, {', '.join(who)}: {reason}" for (label, reason), who in by_reason.items()]


def shown(value: float) -> str:
    """A return with as many digits as matter."""
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def show_choice(choice: Choice, console: Console, *, advise: bool = True) -> None:
    """Print which policy to deploy, and those that it was chosen from; a plan with returns advises itself."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in ("policy", "estimator"):
        table.add_column(name, overflow="fold")
    for name in ("estimate", "90 % interval"):
        table.add_column(name, justify="right")
    table.add_column("believed")
    for one in choice.candidates:
        chosen = one.estimates.chosen
        cells = ("–", "–", "refused") if chosen is None else cells_of(chosen)
        believed = "yes" if one.estimates.believed else "no"
        table.add_row(Text(one.name), "–" if chosen is None else chosen.label, *cells[:2], believed)
    console.print(table)
    if not advise:
        return
    picked = choice.picked
    words = "Deploy none of them yet." if picked is None else f"Deploy {picked.name} ({picked.folder})."
    console.print(Text(words, style="bold"))
    for note in choice.notes:
        console.print(Text(f"• {note}"))


def show_plan(plan: EpisodePlan, console: Console) -> None:
    """Print what was measured, what is believed now, and which episode to run next."""
    from rich.table import Table
    from rich.text import Text

    table = Table("policy", "episodes run", "believed mean return")
    beliefs, run = plan.beliefs, [one.policy for one in plan.measured]
    for i, name in enumerate(plan.names):
        spread = float(beliefs.variance[i]) ** 0.5
        mean = f"{shown(float(beliefs.mean[i]))} ± {shown(spread)}"
        table.add_row(Text(name), str(run.count(name)), mean)
    console.print(table)
    if plan.measured and plan.following is not None:
        console.print(Text(f"Best so far: {plan.names[beliefs.best]}."))
    if plan.following is None:
        console.print(
            Text(f"All {plan.budget} episodes are run. Deploy {plan.names[beliefs.best]}.", style="bold")
        )
        return
    console.print(Text(f"Next episode ({len(run) + 1} of {plan.budget}): {plan.following}", style="bold"))
    if plan.left > 1:
        rest = ", ".join(f"{count} of {name}" for name, count in Counter(plan.order).items())
        console.print(Text(f"If each earns what is expected, the {plan.left} that are left are {rest}."))


def draw_estimates(path: Path, found: Sequence[Estimates]) -> None:
    """A panel for each log: intervals of every estimator, filled where they are believed."""
    count = max(len(one.of_policies) for one in found)
    with figure(path, width=max(4.5, 4.0 * len(found)), height=1.3 + 0.55 * count, formulas=False) as drawn:
        axes = drawn.subplots(1, len(found), squeeze=False)[0]
        for axis, one in zip(axes, found, strict=True):
            axis.axvline(one.log_return, color="0.6", linewidth=1, label="the log's own")
            for place, (name, label) in enumerate(LABELS.items()):
                style, rows = STYLES[place], []
                for i, each in enumerate(one.of_policies):
                    rows += [
                        (i + 0.22 * (place - 1), e)
                        for e in each.of
                        if e.estimator == name and e.value is not None
                    ]
                for first, (height, e) in enumerate(rows):
                    low, high = e.interval or [e.value, e.value]
                    axis.plot([low, high], [height, height], color=style["color"], linewidth=1)
                    axis.plot(
                        [e.value],
                        [height],
                        linestyle="none",
                        marker=style["marker"],
                        color=style["color"],
                        markerfacecolor=style["color"] if e.believed else "white",
                        markersize=5,
                        label=label if first == 0 else None,
                    )
            names = [one_line(each.policy) for each in one.of_policies]
            axis.set_yticks(range(len(names)), names)
            axis.set_ylim(len(names) - 0.4, -0.6)
            axis.set_xlabel("estimated return; filled: believed")
            axis.set_title(one_line(one.log), fontsize=9)
        legend_below(drawn, list(axes), ncols=4, fontsize=8)

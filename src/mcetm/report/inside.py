"""What `mcetm trust` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcetm.agents.inside import Inside
from mcetm.console import one_line
from mcetm.data.transitions import Transitions

if TYPE_CHECKING:
    from rich.console import Console


def show_inside(found: Mapping[str, Inside], log: Transitions, console: Console) -> None:
    """A table of shares, and in words what is outside."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"inside the trust region: {one_line(log.metadata.source)}, {len(log):,} rows"))
    table.add_column("policy")
    for name in ("the log's own actions", "the policy's actions", "least of an episode", "to be expected"):
        table.add_column(name, justify="right")
    for name, one in found.items():
        logged = "no actions" if one.logged is None else f"{one.logged:.1%}"
        table.add_row(
            Text(name), logged, f"{one.policy:.1%}", f"{min(one.episodes):.1%}", f"{one.expected:.1%}"
        )
    console.print(table)
    for name, one in found.items():
        if one.columns:
            shown = ", ".join(f"{one_line(column)} ({share:.0%})" for column, share in one.columns)
            console.print(Text(f"{name}: what is outside is so by {shown}"))

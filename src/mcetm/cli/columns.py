"""Options that say which columns of a table are what; `inspect`, `convert` and `train` share them."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from mcetm.console import say

if TYPE_CHECKING:
    from mcetm.data.columns import Columns

Column = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]
ColumnNames = Annotated[tuple[str, ...], arg(metavar="COLUMN [COLUMN ...]", help_behavior_hint="")]
Numbers = Annotated[tuple[float, ...], arg(metavar="X [X ...]", help_behavior_hint="")]
Factor = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Sign = Annotated[str | None, arg(metavar="SIGN", help_behavior_hint="")]


@dataclass(frozen=True)
class ColumnOptions:
    """Columns of a table; a file beside it (mcetm data describe) says the same."""

    obs: ColumnNames = ()
    """Columns of the observation, in this order."""

    action: ColumnNames = ()
    """Columns of the action, in this order."""

    reward: Column = None
    """Column of the reward, which is to be large."""

    cost: Column = None
    """Column of a cost instead, which is to be small; its negative is the reward."""

    next_obs: ColumnNames = ()
    """Columns of the observation after the step; else it is the following row's."""

    episode: Column = None
    """Column that labels episodes, such as a batch number."""

    terminated: Column = None
    """Column that is 1 where the task ended."""

    truncated: Column = None
    """Column that is 1 where the log was cut while the task went on."""

    time: Column = None
    """Column of times or dates, by which rows are put in order within each episode."""

    action_low: Numbers = ()
    """Least value of each action, or one for all."""

    action_high: Numbers = ()
    """Largest value of each action, or one for all."""

    split_gaps: Factor = None
    """End an episode where more than so many usual steps of time are missing."""

    decimal: Sign = None
    """What separates decimals, a point or a comma, where the numbers do not tell."""

    def settings(self, source: str) -> Columns | None:
        """What was typed, beside what a file beside the table says; None where nothing was typed."""
        from mcetm.data.columns import Columns, file_beside
        from mcetm.envs import described_columns
        from mcetm.errors import UserError
        from mcetm.settings import from_plain, to_plain

        given: dict[str, Any] = {
            name: value for name, value in asdict(self).items() if value not in (None, ())
        }
        if not given:
            return None
        if "cost" in given:
            if "reward" in given:
                raise UserError("Name the column of a reward or that of a cost, not both (--reward, --cost).")
            given["reward"] = f"-{given.pop('cost')}"
        beside = described_columns(source)
        if beside is not None:
            place = file_beside(Path(source))
            say(f"columns are as {place} says, but for {', '.join(given)}", file=sys.stderr)
            given = {**to_plain(beside), **given}
        return from_plain(Columns, given, "columns")

"""Which policy to deploy, by what is estimated of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.errors import UserError
from mcetm.estimates.estimate import PolicyEstimates


@dataclass(frozen=True)
class Candidate:
    """A policy that could be deployed."""

    name: str
    folder: Path
    estimates: PolicyEstimates

    @property
    def value(self) -> float | None:
        """The estimate to go by."""
        chosen = self.estimates.chosen
        return None if chosen is None else chosen.value


@dataclass(frozen=True)
class Choice:
    """Which of the candidates, and how sure that is."""

    candidates: tuple[Candidate, ...]
    """Believed ones first, then by their estimates."""
    log_return: float
    notes: tuple[str, ...]

    @property
    def picked(self) -> Candidate | None:
        """The policy to deploy; None where no estimate can be believed."""
        first = self.candidates[0]
        return first if first.estimates.believed else None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        picked = self.picked
        return {
            "deploy": None if picked is None else picked.name,
            "log_return": self.log_return,
            "candidates": [
                {
                    "policy": one.name,
                    "estimate": one.value,
                    "interval": None if one.estimates.chosen is None else one.estimates.chosen.interval,
                    "believed": one.estimates.believed,
                    "verdict": one.estimates.verdict,
                }
                for one in self.candidates
            ],
            "notes": list(self.notes),
        }


def choose(found: Sequence[Candidate]) -> Choice:
    """The believed policy with the highest estimate; none where none is believed."""
    if not found:
        raise UserError("There is no policy to choose from.")
    worth = lambda one: -np.inf if one.value is None else one.value  # noqa: E731
    order = sorted(found, key=lambda one: (not one.estimates.believed, -worth(one)))
    first, log_return = order[0], found[0].estimates.of[0].log_return
    notes = []
    interval = None if first.estimates.chosen is None else first.estimates.chosen.interval
    if not first.estimates.believed:
        notes.append(
            "No estimate can be believed, so no policy is recommended; real episodes would tell (--budget)."
        )
    elif interval is not None:
        if interval[0] <= log_return:
            notes.append(f"It may be no better than the log's own {log_return:,.4g}.")
        close = [
            one.name
            for one in order[1:]
            if one.estimates.believed
            and one.estimates.chosen is not None
            and one.estimates.chosen.interval is not None
            and one.estimates.chosen.interval[1] >= (first.value or 0.0)
        ]
        if close:
            notes.append(f"These may be as good: {', '.join(close)}. Real episodes would tell (--budget).")
    return Choice(tuple(order), log_return, tuple(notes))

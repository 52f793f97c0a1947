"""What is known of how far a policy can be trusted at some observations: how rare, and because of what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mcetm.arguments import whole


@dataclass(frozen=True)
class Trust:
    """How unlike the log a policy's pairs of observation and action are, and how unlike is too much."""

    score: np.ndarray
    limit: float
    """The quantile of held-out data that the trust region was calibrated to."""
    one_in: np.ndarray | None = None
    """How rare: such a score has one in so many fresh pairs of the log (the conformal level). None where
    trust is the disagreement of a model's members."""
    names: tuple[str, ...] = ()
    """What the numbers of an observation and of an action are called."""
    find_columns: Callable[[], np.ndarray] | None = field(default=None, repr=False)

    @cached_property
    def columns(self) -> np.ndarray | None:
        """How much less each score would be if one column alone were ordinary; columns come last."""
        return None if self.find_columns is None else self.find_columns()

    def because(self, most: int = 3) -> list[tuple[str, ...]]:
        """For every pair that is not trusted, the columns that make it so, the worst first; else nothing.

        Empty as well where no column alone does: then it is how they go together.
        """
        whole("most", most, least=1)
        found, columns = [], self.columns
        for i, good in enumerate(np.ravel(self.trusted)):
            less = None if good or columns is None else columns.reshape(-1, columns.shape[-1])[i]
            worst = [] if less is None else np.argsort(-less)[:most]
            needed = max(1e-6, 0.2 * float(np.ravel(self.score)[i] - self.limit))
            found.append(tuple(self.names[j] for j in worst if less is not None and less[j] > needed))
        return found

    @property
    def trusted(self) -> np.ndarray:
        """Whether each is within the limit."""
        return np.asarray(self.score <= self.limit)

    def __str__(self) -> str:
        if self.one_in is None:
            rows = ", ".join(
                f"{s:.3g}{'' if good else ' (outside)'}"
                for s, good in zip(np.ravel(self.score), np.ravel(self.trusted), strict=True)
            )
            return f"score {rows}; trusted up to {self.limit:.3g}"
        rows = [
            f"1 in {count:,.0f}{'' if good else ' (outside' + _because(why) + ')'}"
            for count, good, why in zip(
                np.ravel(self.one_in), np.ravel(self.trusted), self.because(), strict=True
            )
        ]
        return f"as unusual as {'; '.join(rows)} of the log's pairs"


def _because(columns: tuple[str, ...]) -> str:
    return f": {', '.join(columns)}" if columns else ""

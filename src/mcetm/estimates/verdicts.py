"""Whether an estimate can be believed, and why not, in words.

Each rule looks at something that is known without a simulator: whether the policy stays near the log, and
whether the same estimator finds the returns that the log itself has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcetm.settings import Fraction, Positive, Rate, settings


@settings
class VerdictSettings:
    """When an estimate is believed."""

    coverage: Fraction = 0.6
    """Least share of pairs (s, a) inside the trust region: the policy's actions in the log's states, and
    the steps of imagined episodes."""
    surprise: Rate = 1.3
    """Most that the policy's actions may surprise in the log's states, on average; the log's own have 1. Each
    may be inside the trust region, and all together be a policy that nobody has seen."""
    tolerance: Rate = 0.5
    """Most that an estimator may be wrong by where it can be checked, in spreads of the log's own episode
    returns."""
    width: Rate = 2.0
    """Most that half an interval may be, in the same spreads: a wider one says nothing."""
    episodes: Positive = 5
    """Fewest episodes: with fewer, resampling them says little."""
    rewards: Fraction = 0.3
    """Least rank correlation of the rewards of held-out episodes and those that the world predicts. With
    less, rewards do not depend on what was seen and done, as where a column was shuffled or shifted."""


@dataclass(frozen=True)
class ReturnScale:
    """What the log's own episodes earn, and how much they differ."""

    mean: float
    spread: float
    episodes: int
    stake: float = 0.0
    """How much an episode may earn otherwise, where nothing is known of it."""

    @classmethod
    def of(cls, returns: np.ndarray, *, ends: bool = False) -> ReturnScale:
        """Of these returns; where they are all alike, a twentieth of them stands for their spread.

        At stake is their spread. Where the task can end, an episode may end where nothing is known, and then
        lose all that others earn.
        """
        mean = float(returns.mean())
        spread = max(float(returns.std()), 0.05 * abs(mean), 1e-9)
        return cls(mean, spread, len(returns), max(spread, abs(mean)) if ends else spread)


@dataclass(frozen=True)
class Evidence:
    """What is known of one estimate."""

    actions_inside: float | None
    """Share of the log's states where the policy's action lies inside the trust region."""
    steps_inside: float | None
    """Share of steps of imagined episodes inside it."""
    missed: float | None
    """What the estimator is wrong by where it can be checked; None where nothing was there to compare."""
    half_width: float
    """Half the interval."""
    rewards: float | None = None
    """Rank correlation of predicted and recorded rewards; None where they do not vary."""
    surprise: float | None = None
    """How surprising the policy's actions are in the log's states, on average."""


def believe(found: Evidence, scale: ReturnScale, rules: VerdictSettings) -> tuple[bool, list[str]]:
    """Whether to believe, and the reasons: what speaks against it, or what was looked at."""
    against: list[str] = []
    for share, what in (
        (found.actions_inside, "in the log's states, {:.0%} of the policy's actions are unlike the log's"),
        (found.steps_inside, "{:.0%} of the steps of imagined episodes leave the trust region"),
    ):
        if share is not None and not share >= rules.coverage:
            against.append(what.format(1.0 - share))
    if found.surprise is not None and not found.surprise <= rules.surprise:
        against.append(
            "in the log's states, the policy's actions are, all together, unlike the log's: they surprise "
            f"{found.surprise:.1f} times as much"
        )
    if scale.episodes < rules.episodes:
        count = "one episode" if scale.episodes == 1 else f"{scale.episodes} episodes"
        against.append(f"the log has {count}, too few to resample")
    if found.rewards is not None and not found.rewards >= rules.rewards:
        against.append(
            "the log's rewards hardly depend on what was seen and done: predicted and recorded ones have a "
            f"rank correlation of {found.rewards:.2f}"
        )
    if found.missed is None:
        against.append("nothing in the log is long enough to check the estimator against")
    elif not abs(found.missed) <= rules.tolerance * scale.spread:
        against.append(
            f"it is known to be wrong by {abs(found.missed):,.4g}, and the log's own returns differ by "
            f"{scale.spread:,.4g}"
        )
    if not found.half_width <= rules.width * scale.spread:
        against.append(
            f"its interval is ± {found.half_width:,.4g}, and the log's own returns differ by "
            f"{scale.spread:,.4g}"
        )
    if against:
        return False, against
    return True, _in_favour(found)


def _in_favour(found: Evidence) -> list[str]:
    words: Sequence[tuple[float | None, str]] = (
        (found.actions_inside, "in the log's states, {:.0%} of the policy's actions are like the log's"),
        (found.steps_inside, "{:.0%} of the steps of imagined episodes stay inside the trust region"),
    )
    said = [text.format(share) for share, text in words if share is not None]
    missed = found.missed or 0.0
    return [*said, f"where it can be checked, it is wrong by {abs(missed):,.4g}"]

"""The dataset card: what a log holds, and what about it should make its reader careful."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mcetm.arguments import require
from mcetm.data.histogram import histogram
from mcetm.data.infer import continues
from mcetm.data.intrinsic import IntrinsicDimension, intrinsic_dimension
from mcetm.data.transitions import Metadata, Transitions
from mcetm.tasks.registry import Task, get_task

_SATURATED = 0.999
"""An action component this near to its bound, as a share of the half range, counts as saturated."""
_FEW_TRANSITIONS = 1000
_FEW_CHOICES = 10
"""An action of so few different whole numbers may be a choice among them."""


@dataclass(frozen=True)
class ColumnSummary:
    """Five numbers about a sample, and a histogram to look at."""

    minimum: float
    median: float
    mean: float
    maximum: float
    std: float
    histogram: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray, *, bins: int = 30) -> ColumnSummary:
        """Summarise a non-empty sample."""
        values = values.astype(np.float64)
        return cls(
            minimum=float(values.min()),
            median=float(np.median(values)),
            mean=float(values.mean()),
            maximum=float(values.max()),
            std=float(values.std()),
            histogram=tuple(int(count) for count in histogram(values, bins)[0]),
        )


@dataclass(frozen=True)
class ColumnRanges:
    """Ranges of a field's columns, and those that carry no information of their own."""

    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    constant: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, rows: np.ndarray) -> ColumnRanges:
        """Describe the columns of a field."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        mean, std = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
        constant = tuple(int(i) for i in np.flatnonzero(low == high))
        return cls(
            *(tuple(float(x) for x in values) for values in (low, high, mean, std)),
            constant=constant,
            duplicates=_duplicate_columns(rows, set(constant)),
        )


def _duplicate_columns(rows: np.ndarray, skip: set[int]) -> tuple[tuple[int, int], ...]:
    """Pairs (i, j), i < j, where column j repeats column i; each j is named once."""
    pairs = []
    first: dict[bytes, list[int]] = {}
    probe = rows[:: max(1, len(rows) // 64)]
    for j in range(rows.shape[1]):
        if j in skip:
            continue
        candidates = first.setdefault(probe[:, j].tobytes(), [])
        original = next((i for i in candidates if np.array_equal(rows[:, i], rows[:, j])), None)
        if original is None:
            candidates.append(j)
        else:
            pairs.append((original, j))
    return tuple(pairs)


@dataclass(frozen=True)
class Continuity:
    """Does next_obs of a row equal obs of the following one, inside an episode?"""

    checked: int
    broken: int
    first_broken_row: int | None
    largest_gap: float

    @classmethod
    def of(cls, transitions: Transitions) -> Continuity:
        """Check every pair of neighbouring rows that belong to one episode."""
        inside = ~(transitions.terminated | transitions.truncated)[:-1]
        broken = np.flatnonzero(inside & ~continues(transitions.obs, transitions.next_obs))
        gap = np.abs(transitions.next_obs[broken].astype(np.float64) - transitions.obs[broken + 1])
        return cls(
            checked=int(inside.sum()),
            broken=len(broken),
            first_broken_row=int(broken[0]) if len(broken) else None,
            largest_gap=float(gap.max()) if len(broken) else 0.0,
        )


@dataclass(frozen=True)
class Card:
    """A log from all sides: everything that `mcetm data inspect` shows."""

    metadata: Metadata
    checksum: str
    transitions: int
    episodes: int
    lengths: ColumnSummary
    returns: ColumnSummary | None
    """None for a log without rewards."""
    normalized_score: tuple[float, float] | None
    """Mean and spread of the episodes' returns on the task's scale."""
    obs: ColumnRanges
    action: ColumnRanges
    saturated: float | None
    """Share of action components at a bound; None where the bounds are unknown."""
    bounds_known: bool
    reward: ColumnSummary | None
    terminations: int
    truncations: int
    without_next: int
    """Terminated rows that do not say what came after."""
    continuity: Continuity
    intrinsic: IntrinsicDimension | None
    rule_mismatches: int | None
    """Rows where the task's termination rule and the log disagree; None without a rule."""
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        content = asdict(self)
        content["metadata"]["absent"] = sorted(self.metadata.absent)
        for bound in ("action_low", "action_high"):  # JSON knows no infinity
            values = content["metadata"][bound]
            content["metadata"][bound] = (
                None if values is None else [v if np.isfinite(v) else None for v in values]
            )
        return content


def make_card(transitions: Transitions) -> Card:
    """Look at a log from all sides; one pass per question, no loop over rows.

    **Arguments:**

    - `transitions`: the log.

    **Returns:** sizes, returns, ranges and warnings; printed, the card that `mcetm data inspect` shows.
    """
    require("transitions", transitions, "a log (Transitions)", Transitions)
    metadata = transitions.metadata
    task = get_task(metadata.task) if metadata.task else None
    has_reward = "reward" not in metadata.absent
    returns = transitions.episode_returns
    score = None
    if task is not None and task.scores is not None and has_reward:
        score = (
            float(task.scores.normalize(returns.mean())),
            float(task.scores.normalize_spread(returns.std())),
        )
    facts: dict[str, Any] = {
        "metadata": metadata,
        "checksum": transitions.checksum,
        "transitions": len(transitions),
        "episodes": transitions.num_episodes,
        "lengths": ColumnSummary.of(transitions.episode_lengths),
        "returns": ColumnSummary.of(returns) if has_reward else None,
        "normalized_score": score,
        "obs": ColumnRanges.of(transitions.obs),
        "action": ColumnRanges.of(transitions.action),
        "saturated": _saturated_share(transitions),
        "bounds_known": metadata.action_low is not None,
        "reward": ColumnSummary.of(transitions.reward) if has_reward else None,
        "terminations": int(transitions.terminated.sum()),
        "truncations": int((transitions.truncated & ~transitions.terminated).sum()),
        "continuity": Continuity.of(transitions),
        "without_next": int((~transitions.next_known).sum()),
        "intrinsic": intrinsic_dimension(transitions.next_obs[transitions.next_known]),
        "rule_mismatches": _rule_mismatches(transitions, task),
    }
    ruleless = task is not None and task.termination is None and facts["terminations"] > 0
    warnings = _warnings({**facts, "choices": _choices(transitions), "ruleless": ruleless})
    return Card(**facts, warnings=warnings)


def _choices(transitions: Transitions) -> list[str]:
    """Actions that take few whole numbers only, and more than one."""
    found = []
    for i, column in enumerate(transitions.action.T):
        if (column == np.round(column)).all() and 1 < len(values := np.unique(column)) <= _FEW_CHOICES:
            name = transitions.metadata.name_of("action", i) or str(i)
            found.append(f"{name} ({', '.join(f'{value:g}' for value in values)})")
    return found


def _saturated_share(transitions: Transitions) -> float | None:
    action, metadata = transitions.action, transitions.metadata
    if action.size == 0 or metadata.action_low is None or metadata.action_high is None:
        return None
    low, high = np.array(metadata.action_low, np.float32), np.array(metadata.action_high, np.float32)
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)
    half = np.where(high > low, (high - low) / 2, np.inf)
    return float(np.mean(np.abs(action - (low + high) / 2) >= _SATURATED * half))


def _rule_mismatches(transitions: Transitions, task: Task | None) -> int | None:
    if task is None or task.termination is None:
        return None
    known = transitions.next_known
    ended = task.termination(transitions.next_obs[known])
    return int(np.count_nonzero(ended != transitions.terminated[known]))


def _warnings(facts: dict[str, Any]) -> tuple[str, ...]:
    """What a careful reader should know, in order of weight."""
    metadata: Metadata = facts["metadata"]
    continuity: Continuity = facts["continuity"]
    warnings = []
    if facts["transitions"] < _FEW_TRANSITIONS:
        warnings.append(
            f"only {facts['transitions']} transitions: enough to look at, hardly enough to learn from"
        )
    if continuity.broken:
        warnings.append(
            f"next_obs does not continue in the following row at {continuity.broken:,} of "
            f"{continuity.checked:,} places inside episodes (first: row {continuity.first_broken_row}, "
            f"largest gap {continuity.largest_gap:.3g}): missing rows or unmarked episode ends"
        )
    if facts["rule_mismatches"]:
        warnings.append(
            f"{facts['rule_mismatches']:,} rows disagree with the termination rule of task '{metadata.task}'"
        )
    if facts["without_next"]:
        warnings.append(_said_without_next(facts["without_next"]))
    if metadata.dropped:
        warnings.append(_said_dropped(metadata.dropped))
    if facts["ruleless"]:
        warnings.append(
            f"the task '{metadata.task}' has no rule for its end (termination=), and the log has "
            f"{facts['terminations']:,} terminations: a model-based algorithm learns a rule from them"
        )
    if "reward" in metadata.absent:
        warnings.append("no rewards: dynamics can be learned, a policy cannot")
    if "action" in metadata.absent:
        warnings.append("no actions: only the uncontrolled dynamics can be learned")
    elif not facts["bounds_known"]:
        warnings.append("action bounds are unknown: the data's own range is taken")
    for field in ("obs", "action"):
        columns: ColumnRanges = facts[field]
        named = lambda i, field=field: metadata.name_of(field, int(i)) or str(i)  # noqa: E731
        if columns.constant:
            warnings.append(f"constant {field} columns: {_listed(map(named, columns.constant))}")
        if columns.duplicates:
            pairs = _listed([f"{named(j)} repeats {named(i)}" for i, j in columns.duplicates])
            warnings.append(f"duplicate {field} columns: {pairs}")
    if facts["choices"]:
        warnings.append(
            f"actions that look like a choice of few: {_listed(facts['choices'])}; only continuous actions "
            "are supported, so a policy will take values between"
        )
    if facts["reward"] is not None and facts["reward"].minimum == facts["reward"].maximum:
        warnings.append(f"every reward is {facts['reward'].minimum:g}")
    return (*warnings, *metadata.notes)


def _said_without_next(rows: int) -> str:
    return (
        f"{rows:,} terminated row{'s do' if rows > 1 else ' does'} not say what came after: rewards and ends "
        "are kept, the transition model leaves these rows out"
    )


def _said_dropped(rows: int) -> str:
    were = "rows at which the log was cut were" if rows > 1 else "row at which the log was cut was"
    return f"{rows:,} {were} dropped, as nothing says what came after: rewards there are lost"


def _listed(items: Any) -> str:
    items = [str(item) for item in items]
    return ", ".join(items[:8]) + (f" and {len(items) - 8} more" if len(items) > 8 else "")

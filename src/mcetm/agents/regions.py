"""Where a policy can be trusted: by column of the observation, and along the two columns that matter most.

States are divided along each column of the observation. In every part it is counted how often the policy's
own pair of observation and action is inside the trust region, and how unusual it is. The states are those of
held-out episodes and, where the policy could be run, those that it went to. Only forward passes in NumPy are
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mcetm.agents.policy import Policy

_BINS = 12
"""Parts of a column's range."""
_ROWS_OF_A_CELL = 8
"""States that a cell of the plane should have, on average."""
_CELLS = (6, 20)
"""The plane has so many cells along each side, at least and at most."""
_MOST = 8
"""Columns whose pairs are tried for the plane."""
_TAIL = 0.001
"""The range of a column leaves out this share of the log at either end, so that one wrong row does not
stretch it; what lies beyond counts with the outermost part."""
_AT_ONCE = 20_000


@dataclass(frozen=True)
class ColumnParts:
    """The range of one column of the observation in parts of equal width."""

    name: str
    edges: tuple[float, ...]
    rows: tuple[int, ...]
    """States in each part."""
    inside: tuple[float | None, ...]
    """Share of them where the policy's pair is inside; None where there is no state."""
    one_in: tuple[float | None, ...]
    """How unusual it typically is: as one in so many rows of the log."""
    matters: float
    """The share of how unusual pairs are that this column alone explains."""


@dataclass(frozen=True)
class Plane:
    """Two columns at once; the first index is along the first one."""

    names: tuple[str, str]
    edges: tuple[tuple[float, ...], tuple[float, ...]]
    rows: tuple[tuple[int, ...], ...]
    inside: tuple[tuple[float | None, ...], ...]
    one_in: tuple[tuple[float | None, ...], ...]
    visited: tuple[tuple[float, ...], ...] | None
    """The share of the steps of its own episodes that a policy spends there; None where nothing ran."""
    worst: tuple[float, float, float, float, float] | None
    """The quarter by quarter with most of what is outside: its two ends along each column, and its share."""


@dataclass(frozen=True)
class Regions:
    """Where in the observations the policies of a run can be trusted."""

    rows: int
    """States that are counted, once for every policy."""
    held_out: int
    """Of these, states of held-out episodes; the others the policies went to themselves."""
    learned: bool
    """Whether states are counted that the score learned from, because hardly any were held out."""
    limit: float
    """What is rarer than one in so many rows of the log is outside."""
    usual: tuple[tuple[float, float], ...]
    """(n, share): in which share of the log's states the policy's pair is more unusual than one in n rows."""
    visited_inside: float | None
    """Of the steps of its own episodes, the share inside; None where nothing ran."""
    columns: tuple[ColumnParts, ...]
    """Those that do not stay the same, the ones that matter most first."""
    plane: Plane | None
    """None with fewer than two such columns."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def regions_of(
    policies: Sequence[Policy],
    held_out: np.ndarray,
    log: np.ndarray,
    visited: Sequence[np.ndarray] | None = None,
    *,
    learned: bool = False,
) -> Regions:
    """Score what each policy does in held-out observations, and in those that it went to.

    **Arguments:**

    - `policies`: of one run; each has a score of pairs.
    - `held_out`: observations that no policy and no score learned from.
    - `log`: all observations, for the range of each column.
    - `visited`: observations of episodes that each policy ran itself.
    - `learned`: whether some of `held_out` were not held out at all.
    """
    states = [held_out] * len(policies)
    scored = [_score(policy, rows) for policy, rows in zip(policies, states, strict=True)]
    usual = np.concatenate([one_in for _, one_in in scored])
    own, own_inside = None, None
    if visited is not None:
        went = [_score(policy, rows) for policy, rows in zip(policies, visited, strict=True)]
        own, own_inside = np.concatenate(visited), float(np.concatenate([good for good, _ in went]).mean())
        scored, states = scored + went, states + list(visited)
    inside, one_in = (np.concatenate(part) for part in zip(*scored, strict=True))
    rows = np.concatenate(states)
    pairs, names = policies[0].pairs, policies[0].names
    assert pairs is not None  # noqa: S101  the caller's promise
    low, high = np.quantile(log, [_TAIL, 1 - _TAIL], axis=0).astype(float)
    varied = np.flatnonzero(high > low)
    log_rarity = np.log(one_in)
    columns = []
    for i in varied:
        edges = np.linspace(low[i], high[i], _BINS + 1)
        parts = _parts(rows[:, i], edges)
        columns.append(
            ColumnParts(
                names[i],
                tuple(edges.tolist()),
                *_counted(parts, _BINS, inside, one_in),
                _explained(parts, _BINS, log_rarity),
            )
        )
    order = sorted(range(len(varied)), key=lambda j: -columns[j].matters)
    best = [int(varied[j]) for j in order[:_MOST]]
    return Regions(
        rows=len(rows),
        held_out=len(usual),
        learned=learned,
        limit=float(pairs.one_in(np.asarray(pairs.limit))),
        usual=tuple((float(n), float(np.mean(usual > n))) for n in (5, 20, 50, 100)),
        visited_inside=own_inside,
        columns=tuple(columns[j] for j in order),
        plane=_plane(rows, inside, one_in, best, names, (low, high), own),
    )


def _score(policy: Policy, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each pair is inside, and how unusual it is."""
    obs, pairs = obs.astype(np.float32), policy.pairs
    assert pairs is not None  # noqa: S101
    parts = [obs[start : start + _AT_ONCE] for start in range(0, len(obs), _AT_ONCE)]
    score = np.concatenate([pairs(part, policy(part)) for part in parts])
    return score <= pairs.limit, np.asarray(pairs.one_in(score), float)


def _parts(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """In which part each value is; what lies beyond the ends is in the outermost."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def _counted(
    parts: np.ndarray, count: int, inside: np.ndarray, one_in: np.ndarray
) -> tuple[tuple[int, ...], tuple[float | None, ...], tuple[float | None, ...]]:
    """Rows of each part, the share inside, and the median of how unusual they are."""
    rows = np.bincount(parts, minlength=count)
    good = np.bincount(parts, weights=inside, minlength=count)
    order = np.argsort(parts, kind="stable")
    groups = np.split(one_in[order], np.cumsum(rows)[:-1])
    return (
        tuple(rows.tolist()),
        tuple(float(g / n) if n else None for g, n in zip(good, rows, strict=True)),
        tuple(float(np.median(group)) if len(group) else None for group in groups),
    )


def _explained(parts: np.ndarray, count: int, values: np.ndarray) -> float:
    """The share of the variance that differs between parts; adjusted, so that more parts explain no more."""
    rows = np.bincount(parts, minlength=count)
    used = rows > 0
    free, total = len(values) - int(used.sum()), float(values.var())
    if free <= 0 or total == 0:
        return 0.0
    sums, squares = (np.bincount(parts, weights=values**power, minlength=count)[used] for power in (1, 2))
    within = float((squares - sums**2 / rows[used]).sum()) / free
    return float(np.clip(1 - within / (total * len(values) / (len(values) - 1)), 0.0, 1.0))


def _plane(
    rows: np.ndarray,
    inside: np.ndarray,
    one_in: np.ndarray,
    columns: Sequence[int],
    names: Sequence[str],
    extent: tuple[np.ndarray, np.ndarray],
    visited: np.ndarray | None,
) -> Plane | None:
    """The two columns that together say most of how unusual pairs are."""
    if len(columns) < 2:
        return None
    side = int(np.clip(np.sqrt(len(rows) / _ROWS_OF_A_CELL), *_CELLS))
    coarse = min(side, _CELLS[0])

    def cells(of: np.ndarray, pair: tuple[int, int], side: int) -> np.ndarray:
        first, second = (_parts(of[:, i], np.linspace(extent[0][i], extent[1][i], side + 1)) for i in pair)
        return first * side + second

    explained = lambda pair: _explained(cells(rows, pair, coarse), coarse**2, np.log(one_in))  # noqa: E731
    pair = max(combinations(columns, 2), key=explained)
    shape = lambda flat: tuple(tuple(flat[i * side : (i + 1) * side]) for i in range(side))  # noqa: E731
    counted = _counted(cells(rows, pair, side), side**2, inside, one_in)
    went = None
    if visited is not None:
        went = shape((np.bincount(cells(visited, pair, side), minlength=side**2) / len(visited)).tolist())
    edges = [np.linspace(extent[0][i], extent[1][i], side + 1) for i in pair]
    worst, outside = None, cells(rows[~inside], pair, 4)
    if len(outside) >= 10:
        count = np.bincount(outside, minlength=16)
        first, second = divmod(int(count.argmax()), 4)
        (a, b), (c, d) = (
            np.linspace(extent[0][i], extent[1][i], 5)[[at, at + 1]].tolist()
            for i, at in zip(pair, (first, second), strict=True)
        )
        worst = (a, b, c, d, float(count.max() / len(outside)))
    return Plane(
        (names[pair[0]], names[pair[1]]),
        (tuple(edges[0].tolist()), tuple(edges[1].tolist())),
        *(shape(part) for part in counted),
        visited=went,
        worst=worst,
    )

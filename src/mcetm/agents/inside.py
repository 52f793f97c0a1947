"""How much of a log lies inside what a policy is trusted on: what was done there, and what it would do."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mcetm.agents.policy import Policy
from mcetm.data.transitions import Transitions
from mcetm.errors import UserError

_ROWS = 20_000
"""Rows scored at once."""
_EXPLAINED = 500
"""Rows outside that are asked for their columns."""


@dataclass(frozen=True)
class Inside:
    """Shares of a log's rows that are inside the trust region of a policy."""

    rows: int
    logged: float | None
    """Of the pairs in the log; None for a log without actions."""
    policy: float
    """Of the same states with the policy's own actions."""
    expected: float
    """What fresh episodes of the log that the policy learned from would have."""
    episodes: tuple[float, ...]
    """The policy's share in each episode."""
    columns: tuple[tuple[str, float], ...]
    """Columns that put the policy's pairs outside, each with the share of those rows it is the first of."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def inside_of(policy: Policy, log: Transitions) -> Inside:
    """Score every row of a log; forward passes of small networks, in NumPy."""
    pairs, width = policy.pairs, policy.network.obs_dim
    if pairs is None:
        raise UserError(
            "This policy has no score of pairs in its files, so nothing is known of where to trust it; those "
            "of algorithms that learn in a world have one."
        )
    if log.obs_dim != width:
        raise UserError(f"{log.metadata.source} has observations of {log.obs_dim} numbers, not {width}.")
    known = "action" not in log.metadata.absent
    if known and log.action_dim != policy.network.action_dim:
        raise UserError(
            f"{log.metadata.source} has actions of {log.action_dim} numbers, not {policy.network.action_dim}."
        )
    parts = [slice(start, start + _ROWS) for start in range(0, len(log), _ROWS)]
    obs = [log.obs[part].astype(np.float32) for part in parts]
    chosen = [policy(rows) for rows in obs]
    own = np.concatenate([pairs(o, a) <= pairs.limit for o, a in zip(obs, chosen, strict=True)])
    logged = None
    if known:
        done = [log.action[part].astype(np.float32) for part in parts]
        logged = float(
            np.mean(np.concatenate([pairs(o, a) <= pairs.limit for o, a in zip(obs, done, strict=True)]))
        )
    outside = np.flatnonzero(~own)
    outside = np.random.default_rng(0).permutation(outside)[:_EXPLAINED]
    reasons: Counter[str] = Counter()
    if len(outside):
        because = policy.trust(log.obs[outside].astype(np.float32)).because(1)
        reasons.update(why[0] if why else "several together" for why in because)
    starts = log.episode_starts
    return Inside(
        rows=len(log),
        logged=logged,
        policy=float(own.mean()),
        expected=1.0 - 1.0 / float(pairs.one_in(np.asarray(pairs.limit))),
        episodes=tuple((np.add.reduceat(own.astype(float), starts) / log.episode_lengths).tolist()),
        columns=tuple((name, count / len(outside)) for name, count in reasons.most_common(5)),
    )

"""Which settings of fitted Q evaluation to believe: a tournament in which critics check each other.

Whether a critic fulfils its equation cannot be read off its squared residual, which noise of the process adds
to. The mean residual over rows that are alike can: noise goes out of it. In batch value-function tournaments
(Xie & Jiang, 2021) rows are alike where two critics give them the same values:

    score(i) = max_j √( Σ_g share(g) · mean_g(δ_i)² ),   g: rows with one rank of q_i and one of q_j

Least is best. A critic that is wrong is found out by one that is right, whose values tell the rows apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from mcetm.data.transitions import Transitions
from mcetm.errors import UserError
from mcetm.estimates.asked import Asked, next_actions
from mcetm.estimates.fitted_q import FQESettings, fit_critics
from mcetm.estimates.quantity import Quantity, episode_of_rows

_RANKS = 8
_ROWS = 8192


@dataclass(frozen=True)
class Tournament:
    """Scores of several settings, mean over policies; least is best."""

    settings: tuple[FQESettings, ...]
    scores: tuple[float, ...]

    @property
    def winner(self) -> FQESettings:
        """The settings with the least score."""
        return self.settings[int(np.argmin(self.scores))]


def hold_tournament(
    asked: Sequence[Asked],
    log: Transitions,
    quantity: Quantity,
    settings: Sequence[FQESettings],
    *,
    holdout: float = 0.2,
    seed: int = 0,
) -> Tournament:
    """Fit critics of every policy with each of these settings, and let them check each other."""
    if len(settings) < 2 or log.num_episodes < 2:
        raise UserError("A tournament needs two settings and two episodes at least.")
    rng = np.random.default_rng(seed)
    held = np.zeros(log.num_episodes, bool)
    count = min(max(1, round(holdout * log.num_episodes)), log.num_episodes - 1)
    held[rng.permutation(log.num_episodes)[:count]] = True
    rows = np.flatnonzero(held[episode_of_rows(log)])
    rows = rng.permutation(rows)[:_ROWS]
    left = rng.integers(1, quantity.horizon + 1, len(rows)).astype(np.int32)
    values, errors = [], []
    for config in settings:
        following, usable = (part[:-1] for part in next_actions(asked, log, config.samples, seed=seed))
        policy = np.repeat(np.arange(len(asked)), config.critics)
        weights = np.tile(~held, (len(policy), 1)).astype(float)
        fitted = fit_critics(
            log, following, usable, quantity, config, policy=policy, weights=weights, seed=seed
        )
        shape = (len(asked), len(rows), 1, log.action_dim)
        taken = np.broadcast_to(log.action[rows][None, :, None], shape)
        now = fitted.values(log.obs[rows], taken, policy, left)
        then = fitted.values(log.next_or_same[rows], following[:, rows], policy, np.maximum(left - 1, 1))
        then = np.where(log.terminated[rows] | (left == 1), 0.0, then)
        error = log.reward[rows] + quantity.discount * then - now
        mean = lambda x, c=config.critics: x.reshape(len(asked), c, -1).mean(axis=1)  # noqa: E731
        values.append(mean(now) / quantity.lengths[left])
        errors.append(mean(error))
    scores = np.zeros((len(settings), len(asked)))
    for i, one in product(range(len(settings)), range(len(asked))):
        scores[i, one] = max(
            projected(errors[i][one], values[i][one], values[j][one]) for j in range(len(settings)) if j != i
        )
    return Tournament(tuple(settings), tuple(scores.mean(axis=1).tolist()))


def projected(
    error: Float[np.ndarray, " rows"], first: Float[np.ndarray, " rows"], second: Float[np.ndarray, " rows"]
) -> float:
    """Root mean square of the mean error of rows that two critics value alike."""
    group = _ranks(first) * _RANKS + _ranks(second)
    count = np.bincount(group, minlength=_RANKS**2)
    summed = np.bincount(group, error, minlength=_RANKS**2)
    mean = summed / np.maximum(count, 1)
    return float(np.sqrt((count * mean**2).sum() / len(error)))


def _ranks(values: Float[np.ndarray, " rows"]) -> np.ndarray:
    """Which of equally large groups each value belongs to."""
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return order * _RANKS // len(values)

"""What a system is worth to somebody who may try a few of its policies in the real environment.

A table of offline results has the mean over seeds. A person who deploys one policy may do better: train
several, try some, keep the best. How much better depends on how many tries are allowed.

- `expected_best`: every policy that is tried is measured well; the best of `k` is kept (Kurenkov and
  Kolesnikov, "Showing your offline reinforcement learning work", ICML 2022).
- `bandit_curve`: every try is one episode. A bandit (UCB1) decides which policy has the next one, and the
  policy with the best mean so far would be deployed (Jackson et al., "A clean slate for offline
  reinforcement learning", 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def expected_best(means: np.ndarray) -> np.ndarray:
    """The mean return of the best of k policies drawn without replacement, for every k."""
    ordered, count = np.sort(np.asarray(means, float)), len(means)
    # The policy in place i is the best of k if the other k - 1 are among the i below it.
    chance = [[math.comb(i, k - 1) / math.comb(count, k) for i in range(count)] for k in range(1, count + 1)]
    return np.array(chance) @ ordered


def bandit_curve(
    episodes: Sequence[np.ndarray], pulls: int, *, repeats: int = 2000, seed: int = 0
) -> np.ndarray:
    """The mean return of the policy that would be deployed after 1, 2, …, `pulls` episodes.

    `episodes` holds measured returns of each policy; an episode that the bandit runs is one of them, drawn
    with replacement. What a policy is worth is the mean of all of its episodes.
    """
    if not episodes or any(len(returns) == 0 for returns in episodes):
        raise ValueError("every policy needs at least one measured episode")
    rng, count = np.random.default_rng(seed), len(episodes)
    worth = np.array([np.mean(returns) for returns in episodes])
    low = min(float(np.min(returns)) for returns in episodes)
    scale = max(float(np.max(returns)) for returns in episodes) - low or 1.0
    rows = np.arange(repeats)
    sums, tried = np.zeros((repeats, count)), np.zeros((repeats, count))
    # In what order policies are first tried is nobody's knowledge.
    order = rng.permuted(np.tile(np.arange(count), (repeats, 1)), axis=1)
    curve = np.zeros(pulls)
    for t in range(pulls):
        if t < count:
            arm = order[:, t]
        else:
            bonus = np.sqrt(2.0 * np.log(t) / tried)
            arm = np.argmax(sums / tried + bonus, axis=1)
        drawn = rng.random(repeats)
        for policy, returns in enumerate(episodes):
            here = arm == policy
            picked = np.asarray(returns, float)[(drawn[here] * len(returns)).astype(int)]
            sums[here, policy] += (picked - low) / scale
        tried[rows, arm] += 1
        with np.errstate(invalid="ignore"):
            seen = np.where(tried > 0, sums / tried, -np.inf)
        curve[t] = worth[np.argmax(seen, axis=1)].mean()
    return curve

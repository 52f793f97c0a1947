"""Which policy to try next, where a real episode costs something and estimates say what to expect.

Each policy has a normal belief about its mean return, first from its estimate. An episode is that mean with
noise, so that beliefs after some episodes are normal too:

    1/v' = 1/v + n/σ²,   m' = v' (m / v + Σ returns / σ²)

The next episode goes to the policy with the largest knowledge gradient (Frazier, Powell & Dayanik, 2008): by
how much one more episode of it raises the mean of the policy that would then be deployed.

    KG = s φ(z) + s z Φ(z),   s² = v² / (v + σ²),   z = −|m − best of the others| / s
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Beliefs:
    """What is believed of the mean return of each policy."""

    mean: Float[np.ndarray, " policies"]
    variance: Float[np.ndarray, " policies"]
    noise: float
    """σ: how much episodes of one policy differ."""

    def after(self, measured: Sequence[tuple[int, float]]) -> Beliefs:
        """The beliefs once these returns, each of a policy by its number, are known."""
        precision, weighted = 1.0 / self.variance, self.mean / self.variance
        for policy, value in measured:
            precision[policy] += 1.0 / self.noise**2
            weighted[policy] += value / self.noise**2
        return Beliefs(weighted / precision, 1.0 / precision, self.noise)

    @property
    def gain(self) -> Float[np.ndarray, " policies"]:
        """The knowledge gradient of each policy; 0 for a single one, of which nothing is to be decided."""
        from scipy.stats import norm

        if len(self.mean) < 2:
            return np.zeros(1)
        best, second = np.sort(self.mean)[::-1][:2]
        first = int(np.argmax(self.mean))
        others = np.where(np.arange(len(self.mean)) == first, second, best)
        step = self.variance / np.sqrt(self.variance + self.noise**2)
        z = -np.abs(self.mean - others) / step
        return np.asarray(step * (norm.pdf(z) + z * norm.cdf(z)))

    @property
    def best(self) -> int:
        """The policy that would be deployed now."""
        return int(np.argmax(self.mean))

    @property
    def following(self) -> int:
        """The policy that the next episode should go to."""
        return int(np.argmax(self.gain))

    def plan(self, episodes: int) -> list[int]:
        """Policies of the next episodes, where each earns what is expected of it."""
        beliefs, order = self, []
        for _ in range(episodes):
            order.append(beliefs.following)
            beliefs = beliefs.after([(order[-1], float(beliefs.mean[order[-1]]))])
        return order

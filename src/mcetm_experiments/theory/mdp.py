"""Finite Markov decision processes, one or a whole batch of equal size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from mcetm import UserError

Pairs = Float[np.ndarray, "*batch states actions"]
"""A number for each pair (s, a)."""
Policy = Pairs
"""π(a|s)."""
PairSet = Bool[np.ndarray, "*batch states actions"]
"""A set of pairs, such as U_δ."""

Numbers = Float[np.ndarray, "*batch"] | float
"""One number for each MDP of the batch, or one for all."""


@dataclass(frozen=True)
class FiniteMDP:
    """M = (S, A, P, r, γ, ρ₀). Leading axes, if any, count MDPs of one batch."""

    transition: Float[np.ndarray, "*batch states actions states"]
    """P(s'|s, a)."""
    reward: Pairs
    start: Float[np.ndarray, "*batch states"]
    """ρ₀(s)."""
    gamma: float

    def __post_init__(self) -> None:
        for name, rows in (("transition", self.transition), ("start", self.start)):
            if rows.min() < 0 or not np.allclose(rows.sum(axis=-1), 1.0, atol=1e-8):
                raise UserError(f"The rows of `{name}` must be probabilities that add up to 1.")
        if not 0 < self.gamma < 1:
            raise UserError(f"The discount must lie between 0 and 1, and it is {self.gamma}.")

    def under(self, transition: Float[np.ndarray, "*batch states actions states"]) -> FiniteMDP:
        """The same rewards and start under other dynamics: what a learner believes."""
        return replace(self, transition=transition)

    @property
    def largest(self) -> np.ndarray:
        """V_max = R_max / (1 − γ), the largest absolute value a return can have."""
        return np.asarray(np.abs(self.reward).max(axis=(-2, -1)) / (1 - self.gamma))

    @property
    def floor(self) -> np.ndarray:
        """r_min / (1 − γ): no policy returns less."""
        return np.asarray(self.reward.min(axis=(-2, -1)) / (1 - self.gamma))

    @property
    def span(self) -> np.ndarray:
        """(r_max − r_min) / (1 − γ): no two policies differ by more."""
        return np.asarray(self.reward.max(axis=(-2, -1)) / (1 - self.gamma) - self.floor)

    def expected(self, q: Pairs, policy: Policy) -> np.ndarray:
        """E[q(s₀, a₀)] with s₀ from ρ₀ and a₀ from π."""
        return np.asarray((self.start * state_value(q, policy)).sum(axis=-1))


def state_value(q: Pairs, policy: Policy) -> np.ndarray:
    """V(s) = E_π[Q(s, a)]."""
    return (q * policy).sum(axis=-1)


def expectation(
    kernel: Float[np.ndarray, "*any states actions states"], value: Float[np.ndarray, "*batch states"]
) -> np.ndarray:
    """Σ_s' K(s'|s, a) V(s'); the kernel may carry an axis of members before those of the batch."""
    return (kernel @ value[..., None, :, None])[..., 0]

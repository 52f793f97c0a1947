"""The theorem of section 4.3: both of its sides, as the paper states it and as it can be proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcetm_experiments.theory.hitting import discounted_hitting, hitting_probability, until_hit
from mcetm_experiments.theory.mdp import FiniteMDP, Numbers, Pairs, PairSet, Policy
from mcetm_experiments.theory.operators import bellman


@dataclass(frozen=True)
class Bound:
    """A right-hand side in its two terms."""

    consistency: Numbers
    """What the penalty costs the comparator on its way."""
    truncation: Numbers
    """What the comparator loses where rollouts stop."""

    @property
    def total(self) -> np.ndarray:
        """Their sum."""
        return np.asarray(self.consistency + self.truncation)


def expected_return(mdp: FiniteMDP, policy: Policy) -> np.ndarray:
    """J(π)."""
    return mdp.expected(bellman(mdp).evaluate(policy), policy)


def proved_bound(mdp: FiniteMDP, comparator: Policy, u: Pairs, beta: Numbers, ood: PairSet) -> Bound:
    """2 β E[Σ_{t<τ} γ^t u] + E[γ^{τ+1}] (r_max − r_min) / (1 − γ), along the comparator in the true MDP."""
    along = until_hit(mdp, comparator, ood, u)
    return Bound(
        _twice(beta, along),
        mdp.gamma * mdp.span * discounted_hitting(mdp, comparator, ood),
    )


def paper_bound(mdp: FiniteMDP, comparator: Policy, u: Pairs, beta: Numbers, ood: PairSet) -> Bound:
    """2 β E[Σ_t γ^t u 1(not OOD)] + 2 V_max P(τ < ∞)."""
    along = until_hit(mdp, comparator, np.zeros_like(ood), np.where(ood, 0.0, u))
    return Bound(_twice(beta, along), 2 * mdp.largest * hitting_probability(mdp, comparator, ood))


def mobile_bound(mdp: FiniteMDP, comparator: Policy, u: Pairs, beta: Numbers) -> Bound:
    """2 β E[Σ_t γ^t u], with a β that is valid at every pair (Sun et al., 2023)."""
    return proved_bound(mdp, comparator, u, beta, np.zeros(u.shape, bool))


def morel_bound(mdp: FiniteMDP, model: FiniteMDP, comparator: Policy, ood: PairSet) -> Bound:
    """2 γ α (r_max − r_min) / (1 − γ)² and the truncation term (Kidambi et al., 2020).

    α is the largest total variation between learned and true dynamics outside the OOD set. MOReL writes
    |r| ≤ R_max; for rewards in an interval, R_max is half of its length.
    """
    variation = 0.5 * np.abs(model.transition - mdp.transition).sum(axis=-1)
    alpha = np.where(ood, 0.0, variation).max(axis=(-2, -1))
    return Bound(
        2 * mdp.gamma * alpha * mdp.span / (1 - mdp.gamma),
        mdp.gamma * mdp.span * discounted_hitting(mdp, comparator, ood),
    )


def _twice(beta: Numbers, cost: Numbers) -> np.ndarray:
    """2 β × cost; where β is infinite nothing is proved, even to a comparator that never meets u > 0."""
    finite = np.isfinite(beta)
    return np.where(finite, 2 * np.where(finite, beta, 0.0) * cost, np.inf)

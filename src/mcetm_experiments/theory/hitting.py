"""When a policy meets the OOD set: the law of its first hitting time τ, by linear algebra."""

from __future__ import annotations

import numpy as np

from mcetm_experiments.theory.mdp import FiniteMDP, Pairs, PairSet, Policy
from mcetm_experiments.theory.operators import Bellman


def until_hit(mdp: FiniteMDP, policy: Policy, ood: PairSet, cost: Pairs) -> np.ndarray:
    """E[Σ_{t<τ} γ^t cost(s_t, a_t)]."""
    stopped = np.where(ood[..., None], 0.0, mdp.transition)
    q = Bellman(np.where(ood, 0.0, cost), stopped, mdp.gamma).evaluate(policy)
    return mdp.expected(q, policy)


def discounted_hitting(mdp: FiniteMDP, policy: Policy, ood: PairSet) -> np.ndarray:
    """E[γ^τ], where γ^∞ = 0."""
    q = Bellman(ood.astype(float), np.where(ood[..., None], 0.0, mdp.transition), mdp.gamma).evaluate(policy)
    return mdp.expected(q, policy)


def hitting_probability(mdp: FiniteMDP, policy: Policy, ood: PairSet) -> np.ndarray:
    """P(τ < ∞) from the start."""
    return np.asarray((mdp.start * hitting_by_state(mdp, policy, ood)).sum(axis=-1))


def hitting_by_state(mdp: FiniteMDP, policy: Policy, ood: PairSet) -> np.ndarray:
    """P(τ < ∞ | s₀ = s): the least non-negative solution of h = 1_U + 1_Ū P h under π."""
    now = np.where(ood, policy, 0.0).sum(axis=-1)
    rows = (np.where(ood, 0.0, policy)[..., None] * mdp.transition).sum(axis=-2)
    # The system is singular on states that never reach the set; there h = 0, and elsewhere it is unique.
    reaches = now > 0
    for _ in range(reaches.shape[-1]):
        reaches = reaches | ((rows > 0) & reaches[..., None, :]).any(axis=-1)
    rows = rows * reaches[..., None, :] * reaches[..., :, None]
    hit = np.linalg.solve(np.eye(rows.shape[-1]) - rows, now[..., None])[..., 0]
    return np.clip(hit, 0.0, 1.0)

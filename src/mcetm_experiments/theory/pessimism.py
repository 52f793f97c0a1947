"""The pessimistic policy: penalised where the model is trusted, truncated where it is not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcetm_experiments.theory.assumption import bellman_error, smallest_beta
from mcetm_experiments.theory.ensemble import FiniteEnsemble
from mcetm_experiments.theory.mdp import FiniteMDP, Numbers, Pairs, PairSet, Policy, state_value
from mcetm_experiments.theory.operators import Solution, hybrid


@dataclass(frozen=True)
class Pessimistic:
    """A policy, the fixed point it is greedy in, and the penalty of that fixed point."""

    solution: Solution
    u: Pairs
    """Held fixed while the solution was found."""
    beta: Numbers
    ood: PairSet

    @property
    def policy(self) -> Policy:
        """π̂."""
        return self.solution.policy


def plan(
    model: FiniteMDP,
    ensemble: FiniteEnsemble,
    ood: PairSet,
    beta: Numbers = 0.0,
    *,
    floored: bool = True,
    rounds: int = 1,
) -> Pessimistic:
    """The optimal policy of T̂_MC,β; `ood` all False is penalty-only, β = 0 is truncation-only.

    u is taken at the solution without a penalty, and again at the solution with it if `rounds` > 1: with
    u a function of Q itself there may be no fixed point. `floored` lets truncation pay the least possible
    return and no value fall below it; else truncation pays 0, as in the paper.
    """
    floor = model.floor if floored else None
    after = model.floor if floored else 0.0
    beta = np.broadcast_to(np.asarray(beta, float), model.reward.shape[:-2])
    u = np.zeros_like(model.reward)
    solution = hybrid(model, ood, after=after).optimise(floor)
    for _ in range(rounds):
        u = ensemble.inconsistency(solution.value)
        penalty = beta[..., None, None] * u
        solution = hybrid(model, ood, penalty=penalty, after=after).optimise(floor)
    return Pessimistic(solution, u, beta, ood)


def plan_with_valid_beta(
    mdp: FiniteMDP,
    ensemble: FiniteEnsemble,
    ood: PairSet,
    *,
    floored: bool = True,
    step: float = 1.02,
    tries: int = 200,
) -> Pessimistic:
    """Raise β from 0 until the assumption holds at the solution it gives; +∞ where none can.

    The solution moves with β, so the β that the last solution asked for need not do for the next one. It
    is raised by at least the factor `step`; values between the floor and the ceiling keep it bounded. This
    needs the true MDP: with data alone, everything here can be computed but this.
    """
    model = mdp.under(ensemble.mean)
    beta = np.zeros(mdp.reward.shape[:-2])
    lacking = np.ones(beta.shape, bool)
    found = plan(model, ensemble, ood, beta, floored=floored)
    for _ in range(tries):
        needed = smallest_beta(bellman_error(mdp, model, found.solution.value), found.u, ood)
        lacking = (needed > beta) & np.isfinite(beta)
        if not lacking.any():
            break
        beta = np.where(lacking, np.maximum(needed, step * beta), beta)
        # Nothing is planned with an infinite penalty; its policy is that of β = 0.
        found = plan(model, ensemble, ood, np.where(np.isfinite(beta), beta, 0.0), floored=floored)
    else:
        beta = np.where(lacking, np.inf, beta)
    return Pessimistic(found.solution, found.u, beta, ood)


def recomputed(
    model: FiniteMDP,
    ensemble: FiniteEnsemble,
    ood: PairSet,
    beta: float,
    q: Pairs,
    policy: Policy,
) -> np.ndarray:
    """T̂^π_MC,β Q with u taken from this very Q, as an algorithm with a critic does; no contraction."""
    u = ensemble.inconsistency(state_value(q, policy))
    return hybrid(model, ood, penalty=beta * u)(q, policy)

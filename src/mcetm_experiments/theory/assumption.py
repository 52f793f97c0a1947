"""The assumption of section 4.3: the ensemble's disagreement covers the error of its Bellman backups."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from mcetm_experiments.theory.mdp import FiniteMDP, Numbers, Pairs, PairSet, expectation

_ROUNDING = 1e-12


def bellman_error(mdp: FiniteMDP, model: FiniteMDP, value: Float[np.ndarray, "*batch states"]) -> np.ndarray:
    """|T̂^π Q − T^π Q| = γ |(P̂ − P) V| at every pair, where V(s) = E_π Q(s, a)."""
    error = mdp.gamma * np.abs(expectation(model.transition - mdp.transition, value))
    return np.where(error > _ROUNDING, error, 0.0)


def smallest_beta(error: Pairs, u: Pairs, ood: PairSet) -> np.ndarray:
    """β*: the least β with error ≤ β u outside the OOD set; +∞ where u = 0 < error."""
    ratio = np.divide(error, u, out=np.where(error > 0, np.inf, 0.0), where=u > 0)
    return np.asarray(np.where(ood, 0.0, ratio).max(axis=(-2, -1)))


def assumption_holds(error: Pairs, u: Pairs, ood: PairSet, beta: Numbers) -> np.ndarray:
    """Whether error ≤ β u at every pair outside the OOD set."""
    covered = error <= np.asarray(beta)[..., None, None] * u * (1 + _ROUNDING)
    return np.asarray((covered | ood).all(axis=(-2, -1)))

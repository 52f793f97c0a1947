"""Learned finite dynamics: counts with smoothing, bootstrap members, their disagreement and their energy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from mcetm import UserError
from mcetm_experiments.theory.mdp import Numbers, Pairs, PairSet, expectation

_ROUNDING = 1e-12
"""Members that differ by less agree."""


@dataclass(frozen=True)
class FiniteEnsemble:
    """Learned models P̂_i and how often each pair was seen."""

    members: Float[np.ndarray, "members *batch states actions states"]
    visits: Pairs
    """n(s, a), smoothed."""

    @cached_property
    def mean(self) -> np.ndarray:
        """P̂, the average of the members."""
        return self.members.mean(axis=0)

    def inconsistency(self, value: Float[np.ndarray, "*batch states"]) -> np.ndarray:
        """Model-Bellman inconsistency u(s, a): the spread over members of E[V(s')] (Sun et al., 2023)."""
        spread = expectation(self.members, value).std(axis=0, ddof=1)
        return np.where(spread > _ROUNDING, spread, 0.0)

    def energy(self, kind: Literal["joint", "conditional"] = "joint") -> np.ndarray:
        """The least E(s, a, s') over s', a negative log-likelihood.

        conditional: −log P̂(s'|s, a), all that a contrastive loss can identify. joint: −log p̂(s, a, s'),
        which also knows how often the pair was seen.
        """
        energy = -np.log(self.mean.max(axis=-1))
        if kind == "conditional":
            return energy
        return energy - np.log(self.visits / self.visits.sum(axis=(-2, -1), keepdims=True))


def fit_ensemble(
    counts: Int[np.ndarray, "*batch states actions states"],
    *,
    members: int = 7,
    smoothing: float = 0.1,
    prior: Literal["own", "shared"] = "own",
    seed: int = 0,
) -> FiniteEnsemble:
    """Bootstrap members from transition counts; `smoothing` is the weight of the prior, in transitions.

    prior: what a member believes of a pair it never saw. "shared": any next state alike, for all members,
    so that they agree where none of them knows anything. "own": a random guess each, as networks make.
    """
    if members < 2 or smoothing <= 0:
        raise UserError("An ensemble needs at least two members and smoothing above 0.")
    *batch, states, actions, _ = counts.shape
    rng = np.random.default_rng(seed)
    rows = counts.reshape(-1, states * actions * states)
    total = rows.sum(axis=-1)
    if total.min() < 1:
        raise UserError("Nothing can be learned from a dataset without transitions.")
    drawn = rng.multinomial(total, rows / total[:, None], size=(members, len(rows)))
    shape = (members, *batch, states, actions, states)
    guess = np.full(shape, 1.0 / states)
    if prior == "own":
        guess = rng.dirichlet(np.full(states, 0.1), size=shape[:-1])
    weighed = drawn.reshape(shape) + smoothing * guess
    visits = counts.sum(axis=-1) + smoothing
    return FiniteEnsemble(weighed / weighed.sum(axis=-1, keepdims=True), visits)


def ood_set(energy: Pairs, delta: Numbers) -> PairSet:
    """U_δ: the pairs whose least energy exceeds δ."""
    return energy > np.asarray(delta)[..., None, None]


def energy_quantile(energy: Pairs, level: float) -> np.ndarray:
    """The δ that `level` of all pairs do not exceed, for each MDP."""
    flat = energy.reshape(*energy.shape[:-2], -1)
    return np.asarray(np.quantile(flat, level, axis=-1, method="inverted_cdf"))

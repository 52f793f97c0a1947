"""What can be measured on one batch of finite MDPs with one amount of data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mcetm_experiments.theory import (
    FAMILIES,
    FiniteEnsemble,
    FiniteMDP,
    Pessimistic,
    assumption_holds,
    bellman,
    bellman_error,
    collect,
    count,
    energy_quantile,
    expected_return,
    fit_ensemble,
    hitting_by_state,
    hybrid,
    mobile_bound,
    morel_bound,
    ood_set,
    paper_bound,
    plan,
    plan_with_valid_beta,
    proved_bound,
)
from mcetm_experiments.theory.mdp import state_value

_CLOSE = 1e-8
_ROUNDS = 30
"""How often u is recomputed before it must have settled."""


@dataclass(frozen=True)
class Learning:
    """How models are learned, and what is tried with them."""

    prior: Literal["own", "shared"] = "own"
    """What members believe of pairs they never saw: a random guess each, or the same."""
    energy: Literal["joint", "conditional"] = "joint"
    """Of a pair and its next state, or of the next state given the pair."""
    members: int = 7
    """Models in the ensemble."""
    smoothing: float = 0.1
    """Weight of the prior, in rows."""
    epsilon: float = 0.5
    """The behaviour policy's share of random actions; the rest is optimal."""
    levels: tuple[float, ...] = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
    """δ, as a quantile of the energy over all pairs; 1 truncates nothing."""
    betas: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    """β, the weight of the penalty, among which the best is chosen."""
    rounds: int = 3
    """How often u is recomputed for policies that are compared by their return."""


@dataclass(frozen=True)
class GridCell:
    """A batch of MDPs, the models learned from data of each, and the policy that is optimal in each."""

    mdp: FiniteMDP
    ensemble: FiniteEnsemble
    learning: Learning
    best: np.ndarray
    behaviour: np.ndarray

    @cached_property
    def model(self) -> FiniteMDP:
        """The mean model."""
        return self.mdp.under(self.ensemble.mean)

    def ood(self, level: float) -> np.ndarray:
        """U_δ at this quantile of the energy."""
        energy = self.ensemble.energy(self.learning.energy)
        return ood_set(energy, energy_quantile(energy, level))

    def paying(self, less: float) -> GridCell:
        """The same with every reward lowered by a constant, which changes no optimal policy."""
        return replace(self, mdp=replace(self.mdp, reward=self.mdp.reward - less))

    def gap(self, policy: np.ndarray) -> np.ndarray:
        """J(π*) − J(π), the left-hand side."""
        return expected_return(self.mdp, self.best) - expected_return(self.mdp, policy)


def make_cell(family: str, count_of_mdps: int, rows: int, learning: Learning, *, seed: int) -> GridCell:
    """Draw MDPs, collect so many transitions from each, and learn."""
    mdp = FAMILIES[family](count_of_mdps, seed=seed)
    states, actions = mdp.reward.shape[-2:]
    best = bellman(mdp).optimise().policy
    behaviour = (1 - learning.epsilon) * best + learning.epsilon / actions
    counts = count(collect(mdp, behaviour, rows, seed=seed + 1), states, actions)
    ensemble = fit_ensemble(
        counts, members=learning.members, smoothing=learning.smoothing, prior=learning.prior, seed=seed + 2
    )
    return GridCell(mdp, ensemble, learning, best, behaviour)


def certificates(cell: GridCell) -> dict[str, Any]:
    """Right-hand sides by level of δ, at the smallest β found valid, as shares of the largest gap."""
    rows: dict[str, list[np.ndarray]] = {}
    span = cell.mdp.span
    for level in cell.learning.levels:
        ood = cell.ood(level)
        learned = plan_with_valid_beta(cell.mdp, cell.ensemble, ood)
        right = (cell.mdp, cell.best, learned.u, learned.beta, ood)
        proved, paper = proved_bound(*right), paper_bound(*right)
        morel = morel_bound(cell.mdp, cell.model, cell.best, ood)
        alone = plan(cell.model, cell.ensemble, ood)
        # Where π* meets no OOD pair, nothing should be left but MOBILE's formula.
        unmet = ood.any(axis=(-2, -1)) & (proved.truncation == 0) & np.isfinite(learned.beta)
        mobile = mobile_bound(cell.mdp, cell.best, learned.u, learned.beta)
        found = {
            "outside": ood.mean(axis=(-2, -1)),
            "beta": np.asarray(learned.beta),
            "consistency": proved.consistency / span,
            "truncation": proved.truncation / span,
            "proved": proved.total / span,
            "paper": paper.total / span,
            "morel": morel.total / span,
            "trivial": proved_bound(cell.mdp, cell.best, learned.u, 0.0, np.ones_like(ood)).total / span,
            "gap": cell.gap(learned.policy) / span,
            "violated": cell.gap(learned.policy) > proved.total + _CLOSE,
            "morel violated": cell.gap(alone.policy) > morel.total + _CLOSE,
            "unmet": unmet,
            "unlike mobile": unmet & ~np.isclose(proved.total, mobile.total, atol=_CLOSE),
        }
        for name, values in found.items():
            rows.setdefault(name, []).append(values)
    return {name: np.array(values) for name, values in rows.items()}


ARMS = {
    "paper's operator, r ≥ 0": (0.0, False),
    "paper's operator, r of both signs": (0.5, False),
    "with the floor, r of both signs": (0.5, True),
}
"""How much is taken from every reward (they lie in [0, 1]), and whether truncation pays the floor."""


def statements(cell: GridCell, betas: tuple[float, ...], levels: tuple[float, ...]) -> dict[str, Any]:
    """How often each statement of section 4.3 is true of what was learned, for each β."""
    return {
        arm: {
            **_shares(cell.paying(less), floored, betas, levels),
            "at a valid β": _implications(cell.paying(less), floored, levels),
        }
        for arm, (less, floored) in ARMS.items()
    }


def _shares(
    cell: GridCell, floored: bool, betas: tuple[float, ...], levels: tuple[float, ...]
) -> dict[str, list[float]]:
    shares: dict[str, list[float]] = {}
    for beta in betas:
        found = [
            _true_statements(
                cell, plan(cell.model, cell.ensemble, cell.ood(level), beta, floored=floored), floored
            )
            for level in levels
        ]
        for name in found[0]:
            shares.setdefault(name, []).append(float(np.mean([f[name] for f in found])))
    return shares


def _implications(cell: GridCell, floored: bool, levels: tuple[float, ...]) -> dict[str, Any]:
    """The same at a β for which the assumption does hold, where one is found."""
    found = []
    for level in levels:
        learned = plan_with_valid_beta(
            cell.mdp, cell.ensemble, cell.ood(level), floored=floored, step=1.1, tries=30
        )
        valid = np.isfinite(learned.beta)
        true = _true_statements(cell, replace(learned, beta=np.where(valid, learned.beta, 0.0)), floored)
        found.append({name: values[valid] for name, values in true.items()})
    joined = {name: np.concatenate([f[name] for f in found]) for name in found[0]}
    cases = len(joined["assumption"])
    return {"cases": cases, **{name: float(v.mean()) if cases else None for name, v in joined.items()}}


def _true_statements(cell: GridCell, learned: Pessimistic, floored: bool) -> dict[str, np.ndarray]:
    mdp, model, ood, policy = cell.mdp, cell.model, learned.ood, learned.policy
    error = bellman_error(mdp, model, learned.solution.value)
    after = mdp.floor if floored else 0.0
    penalty = np.asarray(learned.beta)[..., None, None] * learned.u
    backup = hybrid(model, ood, penalty=penalty, after=after)(learned.solution.q, policy)
    lower = (backup <= bellman(mdp)(learned.solution.q, policy) + _CLOSE) | ood
    true = state_value(bellman(mdp).evaluate(policy), policy)
    cut = state_value(hybrid(model, ood, after=after).evaluate(policy), policy)
    risk = mdp.largest[..., None] * hitting_by_state(mdp, policy, ood)
    gap = cell.gap(policy)
    right = (mdp, cell.best, learned.u, learned.beta, ood)
    return {
        "assumption": assumption_holds(error, learned.u, ood, learned.beta),
        "lemma 1": _everywhere(lower, 2),
        "pessimism of the fixed point": _everywhere(learned.solution.value <= true + _CLOSE),
        "lemma 2, lower half": _everywhere(true - cut >= -_CLOSE),
        "lemma 2, upper half": _everywhere(true - cut <= risk + _CLOSE),
        "bound as written": gap <= paper_bound(*right).total + _CLOSE,
        "bound as proved": gap <= proved_bound(*right).total + _CLOSE,
    }


def _everywhere(holds: np.ndarray, axes: int = 1) -> np.ndarray:
    """In every state, or at every pair with `axes` = 2."""
    return np.asarray(holds.all(axis=tuple(range(-axes, 0))))


def returns(cell: GridCell, *, less: float = 0.0, floored: bool = True) -> dict[str, Any]:
    """True returns of every β and level, where the worst policy has 0 and the best 1."""
    cell = cell.paying(less)
    opposite = replace(cell.mdp, reward=-cell.mdp.reward)
    low = expected_return(cell.mdp, bellman(opposite).optimise().policy)
    high = expected_return(cell.mdp, cell.best)

    def score(policy: np.ndarray) -> np.ndarray:
        return (expected_return(cell.mdp, policy) - low) / (high - low)

    learning = cell.learning
    grid = [
        [
            score(plan(cell.model, cell.ensemble, ood, b, floored=floored, rounds=learning.rounds).policy)
            for b in learning.betas
        ]
        for ood in map(cell.ood, learning.levels)
    ]
    return {"grid": np.array(grid), "behaviour": score(cell.behaviour)}


def settled(cell: GridCell, betas: tuple[float, ...], level: float) -> list[float]:
    """For each β, the share of MDPs in which u settles when it is recomputed from every new solution."""
    shares = []
    for beta in betas:
        learned = plan(cell.model, cell.ensemble, cell.ood(level), beta, rounds=_ROUNDS)
        following = cell.ensemble.inconsistency(learned.solution.value)
        change = np.abs(following - learned.u).max(axis=(-2, -1))
        shares.append(float((change <= 1e-6 * (1 + following.max(axis=(-2, -1)))).mean()))
    return shares

"""Finite MDPs, the pessimistic operators and the performance bound."""

from mcetm_experiments.theory.absorbing import absorbing_mdp
from mcetm_experiments.theory.assumption import assumption_holds, bellman_error, smallest_beta
from mcetm_experiments.theory.bound import (
    Bound,
    expected_return,
    mobile_bound,
    morel_bound,
    paper_bound,
    proved_bound,
)
from mcetm_experiments.theory.dataset import DatasetRows, collect, count
from mcetm_experiments.theory.ensemble import FiniteEnsemble, energy_quantile, fit_ensemble, ood_set
from mcetm_experiments.theory.families import FAMILIES, cliff_chain, garnet, torn_grid
from mcetm_experiments.theory.hitting import (
    discounted_hitting,
    hitting_by_state,
    hitting_probability,
    until_hit,
)
from mcetm_experiments.theory.mdp import FiniteMDP
from mcetm_experiments.theory.operators import Bellman, Solution, bellman, hybrid
from mcetm_experiments.theory.pessimism import Pessimistic, plan, plan_with_valid_beta, recomputed

__all__ = [
    "FAMILIES",
    "Bellman",
    "Bound",
    "DatasetRows",
    "FiniteEnsemble",
    "FiniteMDP",
    "Pessimistic",
    "Solution",
    "absorbing_mdp",
    "assumption_holds",
    "bellman",
    "bellman_error",
    "cliff_chain",
    "collect",
    "count",
    "discounted_hitting",
    "energy_quantile",
    "expected_return",
    "fit_ensemble",
    "garnet",
    "hitting_by_state",
    "hitting_probability",
    "hybrid",
    "mobile_bound",
    "morel_bound",
    "ood_set",
    "paper_bound",
    "plan",
    "plan_with_valid_beta",
    "proved_bound",
    "recomputed",
    "smallest_beta",
    "torn_grid",
    "until_hit",
]

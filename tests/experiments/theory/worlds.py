"""Random small worlds for properties that must hold in all of them."""

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from mcetm_experiments.theory import FiniteEnsemble, FiniteMDP, collect, count, fit_ensemble

EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


@dataclass(frozen=True)
class World:
    """An MDP, what was learned of it, an OOD set, a policy and a Q."""

    mdp: FiniteMDP
    ensemble: FiniteEnsemble
    ood: np.ndarray
    policy: np.ndarray
    q: np.ndarray
    rng: np.random.Generator

    @property
    def model(self) -> FiniteMDP:
        return self.mdp.under(self.ensemble.mean)

    @property
    def u(self) -> np.ndarray:
        return self.ensemble.inconsistency((self.q * self.policy).sum(axis=-1))


def random_world(seed: int, *, states: int, actions: int, lowest: float, outside: float, rows: int) -> World:
    rng = np.random.default_rng(seed)
    shape = (states, actions)
    mdp = FiniteMDP(
        rng.dirichlet(np.full(states, 0.3), size=shape),
        rng.uniform(lowest, 1.0, shape),
        rng.dirichlet(np.ones(states)),
        float(rng.uniform(0.3, 0.95)),
    )
    policy = rng.dirichlet(np.full(actions, 0.5), size=states)
    counts = count(collect(mdp, policy, rows, seed=seed), states, actions)
    ensemble = fit_ensemble(counts, members=3, smoothing=float(rng.uniform(0.01, 1.0)), seed=seed)
    return World(mdp, ensemble, rng.random(shape) < outside, policy, rng.normal(0, 5, shape), rng)


def worlds(lowest: float = -1.0) -> st.SearchStrategy[World]:
    """Worlds with rewards between `lowest` and 1."""
    return st.builds(
        random_world,
        st.integers(0, 10**6),
        states=st.integers(1, 7),
        actions=st.integers(1, 4),
        lowest=st.just(lowest),
        outside=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
        rows=st.integers(1, 60),
    )

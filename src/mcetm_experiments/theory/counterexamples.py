"""Small MDPs on which a step of the paper's argument fails (each told in docs/explanation/theory.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mcetm_experiments.theory.ensemble import FiniteEnsemble
from mcetm_experiments.theory.mdp import FiniteMDP


@dataclass(frozen=True)
class Example:
    """A true MDP, a learned one and an OOD set."""

    mdp: FiniteMDP
    model: FiniteMDP
    ood: Bool[np.ndarray, "states actions"]


def escape(gamma: float = 0.9) -> Example:
    """Negative rewards: the learner ends its misery by truncation, and lands in hell.

    At home, staying pays −1/2 for ever; leaving pays 0 now and −1 for ever after, and is OOD. The model is
    exact, so u = 0, and the optimal policy (stay) never meets the OOD set: the paper's bound is 0.
    """
    home, hell = 0, 1
    mdp = _deterministic(
        next_state=[[home, hell], [hell, hell]], reward=[[-0.5, 0.0], [-1.0, -1.0]], gamma=gamma
    )
    return Example(mdp, mdp, np.array([[False, True], [False, False]]))


def misled(gamma: float = 0.9) -> Example:
    """No OOD pair at all, and yet ground truth and truncated model differ: their dynamics do.

    The only action leads to a state that pays 1 for ever; the model expects the one that pays nothing.
    """
    reward = [[0.0], [1.0], [0.0]]
    mdp = _deterministic(next_state=[[1], [1], [2]], reward=reward, gamma=gamma)
    model = _deterministic(next_state=[[2], [1], [2]], reward=reward, gamma=gamma)
    return Example(mdp, model, np.zeros((3, 1), bool))


def later(gamma: float = 0.9) -> Example:
    """A good OOD action one step after the start: what a sum up to H = 0 cannot see.

    From the start one comes to a fork: an OOD action leads to 1 for ever, another pays 0.1 and ends.
    """
    fork, heaven, nothing = 1, 2, 3
    mdp = _deterministic(
        next_state=[[fork, fork], [heaven, nothing], [heaven, heaven], [nothing, nothing]],
        reward=[[0.0, 0.0], [0.0, 0.1], [1.0, 1.0], [0.0, 0.0]],
        gamma=gamma,
    )
    ood = np.zeros((4, 2), bool)
    ood[fork, 0] = True
    return Example(mdp, mdp, ood)


def undecided(home: float, away: float, gamma: float = 0.9) -> tuple[FiniteMDP, FiniteEnsemble]:
    """Two members that disagree whether one stays at home or goes away for ever, and the mean of both.

    With d = Q(home) − Q(away) and u recomputed from Q, a fixed point has (1 − γ/2) d + β |d| / √2 equal to
    the difference of the rewards. For β > √2 (1 − γ/2) the left side is never negative: there is none where
    home pays less, and there are two where it pays more.
    """
    stays = _deterministic(next_state=[[0], [1]], reward=[[home], [away]], gamma=gamma)
    leaves = _deterministic(next_state=[[1], [1]], reward=[[home], [away]], gamma=gamma)
    ensemble = FiniteEnsemble(np.stack([stays.transition, leaves.transition]), np.ones((2, 1)))
    return stays.under(ensemble.mean), ensemble


def _deterministic(next_state: list[list[int]], reward: list[list[float]], gamma: float) -> FiniteMDP:
    """An MDP that starts in state 0 and never throws dice."""
    states = len(next_state)
    return FiniteMDP(np.eye(states)[np.array(next_state)], np.array(reward), np.eye(states)[0], gamma)

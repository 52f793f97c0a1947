"""Truncation as an MDP of its own: one more state that is entered from the OOD set and never left."""

from __future__ import annotations

import numpy as np

from mcetm_experiments.theory.mdp import FiniteMDP, Numbers, PairSet


def absorbing_mdp(model: FiniteMDP, ood: PairSet, *, after: Numbers = 0.0) -> FiniteMDP:
    """M̂_MC of the appendix: pairs of the OOD set lead to ⊥, the last state, which is worth `after`.

    MOReL (Kidambi et al., 2020) builds the same with a large negative reward at ⊥.
    """
    *batch, states, actions = model.reward.shape
    transition = np.zeros((*batch, states + 1, actions, states + 1))
    transition[..., :-1, :, :-1] = np.where(ood[..., None], 0.0, model.transition)
    transition[..., :-1, :, -1] = ood
    transition[..., -1, :, -1] = 1.0
    halt = (1 - model.gamma) * np.asarray(after, float)[..., None, None]
    reward = np.concatenate([model.reward, np.broadcast_to(halt, (*batch, 1, actions))], axis=-2)
    start = np.concatenate([model.start, np.zeros((*batch, 1))], axis=-1)
    return FiniteMDP(transition, reward, start, model.gamma)

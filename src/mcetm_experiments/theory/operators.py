"""The Bellman operators of section 4.3: T^π, T̂^π, T̂^π_MC and T̂^π_MC,β are one affine map.

Truncation only removes mass from the kernel and the penalty only changes the reward, so that each of them is
Q ↦ R + γ K Π Q with a K whose rows add up to at most 1. Each is therefore a γ-contraction and monotone, as
long as the uncertainty inside R is held fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from mcetm_experiments.theory.mdp import FiniteMDP, Numbers, Pairs, PairSet, Policy, expectation, state_value

_TIE = 1e-11
"""Actions closer than this are equally good; otherwise rounding makes policy iteration turn in circles."""


@dataclass(frozen=True)
class Solution:
    """The fixed point of an optimal Bellman operator and the policy that is greedy in it."""

    q: Pairs
    value: Float[np.ndarray, "*batch states"]
    policy: Policy


@dataclass(frozen=True)
class Bellman:
    """Q ↦ R + γ K Π Q."""

    reward: Pairs
    kernel: Float[np.ndarray, "*batch states actions states"]
    """Sub-stochastic: what is missing in a row has ended."""
    gamma: float

    def __call__(self, q: Pairs, policy: Policy) -> np.ndarray:
        """One application under a policy."""
        return self.backup(state_value(q, policy))

    def backup(self, value: Float[np.ndarray, "*batch states"]) -> np.ndarray:
        """R + γ K V."""
        return self.reward + self.gamma * expectation(self.kernel, value)

    def evaluate(self, policy: Policy) -> np.ndarray:
        """The fixed point for a policy, by linear algebra."""
        kernel = (policy[..., None] * self.kernel).sum(axis=-2)
        return self.backup(_discounted(kernel, state_value(self.reward, policy), self.gamma))

    def optimise(self, floor: Numbers | None = None) -> Solution:
        """The best policy's fixed point, by policy iteration; with a floor, of Q ↦ max(floor, R + γ K V).

        A floor is one more action, which stops and pays it.
        """
        reward, kernel = self.reward, self.kernel
        least = np.asarray(-np.inf if floor is None else floor, float)[..., None, None]
        if floor is not None:
            reward = np.concatenate([reward, np.broadcast_to(least, (*reward.shape[:-1], 1))], axis=-1)
            kernel = np.concatenate([kernel, np.zeros_like(kernel[..., :1, :])], axis=-2)
        choice = reward.argmax(axis=-1)
        while True:
            rows = np.take_along_axis(kernel, choice[..., None, None], axis=-2)[..., 0, :]
            value = _discounted(rows, _at(reward, choice), self.gamma)
            q = reward + self.gamma * expectation(kernel, value)
            better = q.max(axis=-1) > _at(q, choice) + _TIE
            if not better.any():
                break
            choice = np.where(better, q.argmax(axis=-1), choice)
        own = q[..., : self.reward.shape[-1]]
        policy = np.eye(own.shape[-1])[own.argmax(axis=-1)]
        return Solution(np.maximum(own, least), value, policy)


def bellman(mdp: FiniteMDP) -> Bellman:
    """T^π of the true MDP, T̂^π of a learned one."""
    return Bellman(mdp.reward, mdp.transition, mdp.gamma)


def hybrid(model: FiniteMDP, ood: PairSet, *, penalty: Pairs | None = None, after: Numbers = 0.0) -> Bellman:
    """T̂^π_MC,β with `penalty` = β u, T̂^π_MC without; `after` is what a truncated rollout is worth.

    The paper stops with 0. That is pessimistic for rewards that are never negative; `model.floor` always is.
    """
    after = np.asarray(after, float)[..., None, None]
    inside = model.reward if penalty is None else model.reward - penalty
    reward = np.where(ood, model.reward + model.gamma * after, inside)
    return Bellman(reward, np.where(ood[..., None], 0.0, model.transition), model.gamma)


def _discounted(rows: np.ndarray, reward: np.ndarray, gamma: float) -> np.ndarray:
    """(I − γ K)⁻¹ r."""
    return np.linalg.solve(np.eye(rows.shape[-1]) - gamma * rows, reward[..., None])[..., 0]


def _at(q: np.ndarray, choice: np.ndarray) -> np.ndarray:
    return np.take_along_axis(q, choice[..., None], axis=-1)[..., 0]

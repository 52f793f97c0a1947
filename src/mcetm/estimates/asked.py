"""The policies that are asked about: their actions in the states of a log, and the density of an action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32

from mcetm.agents.policy import Policy
from mcetm.data.transitions import Transitions
from mcetm.errors import UserError

_ROWS = 8192
"""Rows that a policy is asked at once: what its layers hold stays in the processor's cache."""
_EDGE = 1e-5


@dataclass(frozen=True)
class Asked:
    """One policy, as estimators ask it: it acts as its network does, with the mode or with samples."""

    name: str
    network: Any
    """A `BehaviourPolicy` that has widths and may be deterministic."""

    @classmethod
    def of(cls, policy: Policy, name: str, log: Transitions) -> Asked:
        """A policy that must fit the log."""
        for what, own, wanted in (
            ("observations", policy.network.obs_dim, log.obs_dim),
            ("actions", policy.network.action_dim, log.action_dim),
        ):
            if own != wanted:
                raise UserError(f"{name} has {what} of width {own}, and those of the log have {wanted}.")
        return cls(name, policy.network)

    @property
    def deterministic(self) -> bool:
        """Whether it has one action for a state."""
        return self.network.deterministic

    def act(self, obs: np.ndarray, rng: np.random.Generator) -> Float32[np.ndarray, "rows action"]:
        """One action for each row."""
        return np.asarray(self.network.sample(np.asarray(obs, np.float32), rng), np.float32)

    def actions(
        self, obs: np.ndarray, samples: int, *, seed: int
    ) -> Float32[np.ndarray, "rows samples action"]:
        """Several actions for each row; they are all the same where the policy has one."""
        rng = np.random.default_rng(seed)
        parts = [obs[start : start + _ROWS] for start in range(0, len(obs), _ROWS)]
        if self.deterministic:
            once = np.concatenate([self.act(part, rng) for part in parts])[:, None]
            return np.broadcast_to(once, (len(obs), samples, once.shape[-1]))
        drawn = [np.stack([self.act(part, rng) for _ in range(samples)], axis=1) for part in parts]
        return np.concatenate(drawn)

    def log_density(
        self, obs: np.ndarray, action: np.ndarray, kernel: Float[np.ndarray, " action"]
    ) -> Float[np.ndarray, " rows"]:
        """Log-density of actions; a deterministic policy gets Gaussian noise of this spread around its."""
        if self.deterministic:
            off = (action - self.actions(obs, 1, seed=0)[:, 0]) / kernel
            return (-0.5 * off**2 - np.log(kernel) - 0.5 * np.log(2.0 * np.pi)).sum(axis=-1)
        network = self.network.plain
        low = np.array(network.low or (-1.0,) * network.action_dim)
        high = np.array(network.high or (1.0,) * network.action_dim)
        half = 0.5 * (high - low)
        unit = np.clip((action - low) / half - 1.0, -1.0 + _EDGE, 1.0 - _EDGE)
        parts = range(0, len(obs), _ROWS)
        found = [network.log_prob(obs[i : i + _ROWS], unit[i : i + _ROWS].astype(np.float32)) for i in parts]
        return np.concatenate(found) - np.log(half).sum()


def next_actions(
    asked: Sequence[Asked], log: Transitions, samples: int, *, seed: int
) -> tuple[Float32[np.ndarray, "policies rows samples action"], Bool[np.ndarray, "policies rows"]]:
    """Actions of each policy at next states, those of the log itself last, and where they are known."""
    if all(policy.deterministic for policy in asked):
        samples = 1
    shape = (len(asked) + 1, len(log), samples, log.action_dim)
    found = np.empty(shape, np.float32)
    for i, policy in enumerate(asked):
        found[i] = policy.actions(log.next_or_same, samples, seed=seed + i)
    own = np.concatenate([log.action[1:], log.action[-1:]])
    found[-1] = own[:, None]
    known = np.ones(shape[:2], bool)
    known[-1] = ~log.truncated | log.terminated  # after a cut nobody knows what the log's own would have been
    return found, known

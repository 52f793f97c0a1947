"""A line on which everything is known: s' = s + a / 2, r = −s'², and policies that act as tanh(g s + b)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mcetm.data import Transitions
from mcetm.dynamics import Samples, TransitionModel
from mcetm.tasks.policy import TanhGaussianPolicy

HORIZON = 4


def acting(gain: float, shift: float = 0.0, *, spread: float | None = None) -> TanhGaussianPolicy:
    """tanh(gain · s + shift), with Gaussian noise before the tanh where there is a spread."""
    number = lambda value: np.array([value], np.float32)  # noqa: E731
    return TanhGaussianPolicy(
        layers=(),
        mean=(number(gain)[None], number(shift)),
        log_std=(number(0.0)[None], number(np.log(spread or 1.0))),
        deterministic=spread is None,
    )


def line_log(episodes: int = 60, *, width: float = 1.0, seed: int = 0) -> Transitions:
    """Whole episodes with uniform actions from −width to width."""
    rng = np.random.default_rng(seed)
    obs = np.zeros((episodes, HORIZON + 1, 1), np.float32)
    obs[:, 0, 0] = rng.uniform(-1.0, 1.0, episodes)
    action = rng.uniform(-width, width, (episodes, HORIZON, 1)).astype(np.float32)
    for t in range(HORIZON):
        obs[:, t + 1] = obs[:, t] + 0.5 * action[:, t]
    flat = lambda x: x.reshape(-1, 1)  # noqa: E731
    truncated = np.zeros((episodes, HORIZON), bool)
    truncated[:, -1] = True
    return Transitions.from_arrays(
        obs=flat(obs[:, :-1]),
        action=flat(action),
        reward=-(flat(obs[:, 1:])[:, 0] ** 2),
        next_obs=flat(obs[:, 1:]),
        terminated=np.zeros(episodes * HORIZON, bool),
        truncated=truncated.ravel(),
    )


def true_return(policy: TanhGaussianPolicy, starts: np.ndarray) -> np.ndarray:
    """The return of a deterministic policy from each first state."""
    obs, total = starts.astype(np.float32), np.zeros(len(starts))
    for _ in range(HORIZON):
        obs = obs + 0.5 * policy.mode(obs)
        total -= obs[:, 0] ** 2
    return total


class Line(TransitionModel):
    """The truth, in several members, each with an error of its own."""

    off: Array
    beyond: float = float("inf")
    """Members disagree where an action is larger than that."""

    @property
    def num_members(self) -> int:
        return self.off.shape[0]

    def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
        del key
        unsure = jnp.where(jnp.abs(action).max() > self.beyond, jnp.arange(self.num_members), 0)
        off = self.off + 0.1 * unsure.astype(jnp.float32)
        following = obs + 0.5 * action + off[:, None, None]
        return Samples(jnp.broadcast_to(following, (self.num_members, count, obs.shape[0])))


def reward(obs: Array, action: Array, following: Array) -> Array:
    """−s'²."""
    del obs, action
    return -(following**2).sum()


def key(number: int = 0) -> Array:
    """A key."""
    return jax.random.key(number)

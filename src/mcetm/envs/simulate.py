"""One block of collection: a few environments stepped side by side, the policy evaluated in batches.

A block is the unit of determinism. It holds a fixed number of environments with their own seeds
and is simulated by one process from start to end, so what it contains does not depend on how
many processes share the work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcetm.tasks.policy import Policy


@dataclass(frozen=True)
class Block:
    """What one block simulates."""

    env_id: str
    env_kwargs: Mapping[str, Any]
    policies: tuple[Policy, ...]
    """One, or several of which each episode draws one."""
    lanes: int
    """Environments stepped side by side."""
    lane_steps: int
    """Steps wanted of each of them at least; its last episode is always finished."""
    seed: tuple[int, ...]
    time_limit: int | None = None
    """Cut episodes here if the environment itself has no limit; without one they might never end."""

    @property
    def quota(self) -> int:
        """Rows this block holds at least."""
        return self.lanes * self.lane_steps


@dataclass
class _Lane:
    """One environment and the rows it has produced."""

    env: Any
    policy: int
    obs: np.ndarray
    steps: int = 0
    episode_steps: int = 0
    rows: dict[str, list[Any]] = field(default_factory=dict)

    def record(self, **row: Any) -> None:
        for name, value in row.items():
            self.rows.setdefault(name, []).append(value)


def make_env(env_id: str, env_kwargs: Mapping[str, Any]) -> Any:
    """The environment, without Gymnasium's checks and without its advice to move on to v5 physics."""
    import gymnasium

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*out of date.*", category=DeprecationWarning)
        return gymnasium.make(env_id, disable_env_checker=True, **env_kwargs)


def run_block(block: Block, on_progress: Callable[[int], None] = lambda steps: None) -> dict[str, np.ndarray]:
    """Simulate a block; rows come back environment by environment, episodes whole.

    Fields are those of `Transitions`, with `qpos` and `qvel` (the state before the step) where
    the environment is MuJoCo's.
    """
    rng = np.random.default_rng(block.seed)
    lanes = []
    for number in range(block.lanes):
        env = make_env(block.env_id, block.env_kwargs)
        first_seed = int(np.random.default_rng((*block.seed, number)).integers(2**31))
        obs, _ = env.reset(seed=first_seed)
        lanes.append(_Lane(env, policy=int(rng.integers(len(block.policies))), obs=_single(obs)))

    active = lanes
    while active:
        actions = _act(block.policies, active, rng)
        for lane, action in zip(active, actions, strict=True):
            state = _simulator_state(lane.env)
            following, reward, terminated, truncated, _ = lane.env.step(action)
            following = _single(following)
            lane.steps += 1
            lane.episode_steps += 1
            truncated = truncated or (lane.episode_steps == block.time_limit and not terminated)
            lane.record(
                obs=lane.obs,
                action=action,
                reward=reward,
                next_obs=following,
                terminated=bool(terminated),
                truncated=bool(truncated),
                **state,
            )
            lane.obs = following
            if terminated or truncated:
                lane.episode_steps = 0
                lane.obs = _single(lane.env.reset()[0])
                lane.policy = int(rng.integers(len(block.policies)))
        on_progress(len(active))
        active = [lane for lane in active if lane.steps < block.lane_steps or lane.episode_steps > 0]
    for lane in lanes:
        lane.env.close()
    return _stack(lanes)


def _single(obs: Any) -> np.ndarray:
    return np.array(obs, np.float32)  # a copy: some environments reuse their buffer


def _simulator_state(env: Any) -> dict[str, np.ndarray]:
    """MuJoCo's full state, of which the observation leaves a part out."""
    data = getattr(env.unwrapped, "data", None)
    if data is None or not hasattr(data, "qpos"):
        return {}
    return {"qpos": data.qpos.copy(), "qvel": data.qvel.copy()}


def _act(policies: tuple[Policy, ...], lanes: list[_Lane], rng: np.random.Generator) -> np.ndarray:
    """One action per lane; lanes that follow the same policy are evaluated together."""
    obs = np.stack([lane.obs for lane in lanes])
    if len(policies) == 1:
        return policies[0].sample(obs, rng)
    chosen = np.array([lane.policy for lane in lanes])
    parts = [(chosen == i, policy) for i, policy in enumerate(policies) if (chosen == i).any()]
    samples = [(mask, policy.sample(obs[mask], rng)) for mask, policy in parts]
    actions = np.empty((len(lanes), samples[0][1].shape[1]), np.float32)
    for mask, sample in samples:
        actions[mask] = sample
    return actions


def _stack(lanes: list[_Lane]) -> dict[str, np.ndarray]:
    names = next((lane.rows for lane in lanes if lane.rows), {})
    kinds = {"terminated": bool, "truncated": bool, "qpos": np.float64, "qvel": np.float64}
    return {
        name: np.array(
            [value for lane in lanes for value in lane.rows.get(name, [])], kinds.get(name, np.float32)
        )
        for name in names
    }

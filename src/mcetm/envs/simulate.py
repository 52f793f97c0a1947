"""One block of collection: a few environments stepped side by side, the policy evaluated in batches.

A block is the unit of determinism. It holds a fixed number of environments with their own seeds
and is simulated by one process from start to end, so what it contains does not depend on how
many processes share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcetm.errors import UserError
from mcetm.tasks.environments import failed, open_environment
from mcetm.tasks.policy import BehaviourPolicy

_DTYPES = {"terminated": bool, "truncated": bool, "qpos": np.float64, "qvel": np.float64}


@dataclass(frozen=True)
class Block:
    """What one block simulates."""

    env_id: str
    env_kwargs: Mapping[str, Any]
    obs_dim: int
    action_dim: int
    policies: tuple[BehaviourPolicy, ...]
    """One, or several of which each episode draws one."""
    lanes: int
    """Environments stepped side by side."""
    lane_steps: int
    """Steps wanted of each of them at least; its last episode is always finished."""
    seed: tuple[int, ...]
    """The dataset's seed, and the block's place in the dataset."""
    time_limit: int | None = None
    """Cut episodes here if the environment itself has no limit; without one they might never end."""

    def random(self, *place: int) -> np.random.Generator:
        """Random numbers of this block, or of a place within it."""
        return np.random.default_rng(np.random.SeedSequence(self.seed[0], spawn_key=(*self.seed[1:], *place)))

    @property
    def quota(self) -> int:
        """Rows this block holds at least."""
        return self.lanes * self.lane_steps


class _Lane:
    """One environment, where it stands, and the rows it has produced."""

    def __init__(self, block: Block, number: int) -> None:
        self._env = make_env(block.env_id, block.env_kwargs)
        for what, space, width in (
            ("observations", self._env.observation_space, block.obs_dim),
            ("actions", self._env.action_space, block.action_dim),
        ):
            if space.shape != (width,):
                raise UserError(
                    f"The environment {block.env_id} has {what} of shape {space.shape}, "
                    f"but the task's have {width} components."
                )
        self._env_id, self._time_limit = block.env_id, block.time_limit
        self._width = block.obs_dim
        self.obs = self._reset(int(block.random(number).integers(2**31)))
        self.episode_steps = self.rows = 0
        # MuJoCo's full state, of which the observation leaves a part out.
        data = getattr(self._env.unwrapped, "data", None)
        self._state = {name: getattr(data, name) for name in ("qpos", "qvel") if hasattr(data, name)}
        self._capacity = block.lane_steps + (block.time_limit or block.lane_steps)
        self._columns: dict[str, np.ndarray] = {}

    def step(self, action: np.ndarray) -> bool:
        """Take a step and record it; True when it ended an episode, and a new one stands at its start."""
        if not np.isfinite(action).all():
            raise UserError(f"A policy gave an action that is not finite in {self._env_id}.")
        state = {name: value.copy() for name, value in self._state.items()}
        try:
            following, reward, terminated, truncated, _ = self._env.step(action)
            following, reward = self._single(following), float(reward)
            ended, truncated = bool(terminated), bool(truncated)
        except Exception as error:  # whatever somebody's environment raises
            raise failed(self._env_id, "step", error) from None
        self.episode_steps += 1
        cut = truncated or (self.episode_steps == self._time_limit and not ended)
        before, self.obs = self.obs, following
        self._record(
            obs=before,
            action=action,
            reward=reward,
            next_obs=self.obs,
            terminated=ended,
            truncated=cut,
            **state,
        )
        if ended or cut:
            self.episode_steps = 0
            self.obs = self._reset()
        return ended or cut

    def _reset(self, seed: int | None = None) -> np.ndarray:
        try:
            return self._single(self._env.reset(seed=seed)[0])
        except Exception as error:
            raise failed(self._env_id, "reset", error) from None

    def _single(self, obs: Any) -> np.ndarray:
        found = np.array(obs, np.float32)  # a copy: some environments reuse their buffer
        if found.shape != (self._width,):
            raise ValueError(f"its observation has the shape {found.shape}, and {(self._width,)} is needed")
        if not np.isfinite(found).all():
            raise ValueError("its observation is not finite")
        return found

    def _record(self, **row: Any) -> None:
        if not self._columns:
            self._columns = {
                name: np.empty((self._capacity, *np.shape(value)), _DTYPES.get(name, np.float32))
                for name, value in row.items()
            }
        elif self.rows == self._capacity:
            self._capacity *= 2
            self._columns = {
                name: np.resize(c, (self._capacity, *c.shape[1:])) for name, c in self._columns.items()
            }
        for name, value in row.items():
            self._columns[name][self.rows] = value
        self.rows += 1

    def close(self) -> dict[str, np.ndarray]:
        """The rows recorded."""
        self._env.close()
        return {name: column[: self.rows] for name, column in self._columns.items()}


def make_env(env_id: str, env_kwargs: Mapping[str, Any]) -> Any:
    """The environment, without Gymnasium's checks and without its advice to move on to v5 physics.

    Observations and actions with parts are one vector each, laid out as in logs (`tasks/layout.py`).
    """
    return open_environment(env_id, env_kwargs)


def run_block(block: Block, on_progress: Callable[[int], None] = lambda steps: None) -> dict[str, np.ndarray]:
    """Simulate a block; rows come back environment by environment, episodes whole.

    Fields are those of `Transitions`, with `qpos` and `qvel` (the state before the step) where
    the environment is MuJoCo's.
    """
    rng = block.random()
    lanes = [_Lane(block, number) for number in range(block.lanes)]
    # Which policy each lane follows; drawn anew for every episode.
    chosen = rng.integers(len(block.policies), size=block.lanes)
    active = list(range(block.lanes))
    while active:
        obs = np.stack([lanes[i].obs for i in active])
        for i, action in zip(active, _act(block.policies, chosen[active], obs, rng), strict=True):
            if lanes[i].step(action):
                chosen[i] = rng.integers(len(block.policies))
        on_progress(len(active))
        active = [i for i in active if lanes[i].rows < block.lane_steps or lanes[i].episode_steps > 0]
    parts = [lane.close() for lane in lanes]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _act(
    policies: tuple[BehaviourPolicy, ...], chosen: np.ndarray, obs: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One action per observation; those that follow the same policy are evaluated together."""
    if len(policies) == 1:
        return policies[0].sample(obs, rng)
    actions: np.ndarray | None = None
    for number in np.unique(chosen):
        mask = chosen == number
        sample = policies[number].sample(obs[mask], rng)
        actions = np.empty((len(obs), sample.shape[1]), np.float32) if actions is None else actions
        actions[mask] = sample
    assert actions is not None  # noqa: S101 (some policy is always followed)
    return actions

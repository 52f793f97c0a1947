"""The truth about any state: the simulator put there, and one step taken with an action."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32

from mcetm.envs.simulate import make_env
from mcetm.errors import UserError
from mcetm.tasks.registry import Task

Positions = Float[np.ndarray, "rows qpos"]
Velocities = Float[np.ndarray, "rows qvel"]


@dataclass(frozen=True)
class Stepped:
    """What is seen before and after one step from given states, and whether it ended the task."""

    obs: Float32[np.ndarray, "rows obs"]
    next_obs: Float32[np.ndarray, "rows obs"]
    terminated: Bool[np.ndarray, " rows"]


def true_transitions(
    task: Task, qpos: Positions, qvel: Velocities, action: Float[np.ndarray, "rows action"]
) -> Stepped:
    """One environment step of a MuJoCo task from each state; rows know nothing of each other.

    States are the simulator's own, as `Transitions.infos` keeps them: observations leave the distance out,
    and hopper's and walker2d's clip velocities at ±10, so that of a fast state not all is seen.
    """
    env = mujoco_env(task)
    try:
        shapes = (qpos.shape[1:], qvel.shape[1:], action.shape[1:])
        wanted = ((env.model.nq,), (env.model.nv,), (task.action_dim,))
        if shapes != wanted:
            raise UserError(f"States and actions of {task.name} have widths {wanted}, not {shapes}.")
        reset: Any = importlib.import_module("mujoco").mj_resetData
        obs, next_obs = (np.empty((len(qpos), task.obs_dim), np.float32) for _ in range(2))
        terminated = np.zeros(len(qpos), bool)
        for row, (position, velocity, chosen) in enumerate(zip(qpos, qvel, action, strict=True)):
            # The solver starts from its last solution: without this, a row would depend on the one before it.
            reset(env.model, env.data)
            env.set_state(position, velocity)
            obs[row] = env._get_obs()
            next_obs[row], _, terminated[row], _, _ = env.step(chosen)
        return Stepped(obs, next_obs, terminated)
    finally:
        env.close()


def states_of(task: Task, obs: Float[np.ndarray, "rows obs"]) -> tuple[Positions, Velocities]:
    """States that are seen as these observations: at distance 0, and no faster than what is seen."""
    env = mujoco_env(task)
    positions, velocities = env.model.nq, env.model.nv
    env.close()
    # The locomotion tasks show all positions but the distance, and then all velocities.
    if obs.shape[1] != positions - 1 + velocities:
        raise UserError(f"States of {task.name} cannot be told from observations of width {obs.shape[1]}.")
    seen = obs.astype(np.float64)
    distance = np.zeros((len(seen), 1))
    return np.concatenate([distance, seen[:, : positions - 1]], axis=1), seen[:, positions - 1 :]


def mujoco_env(task: Task) -> Any:
    """The simulator of a task, which must be one that can be put into a given state."""
    env = make_env(task.env_id, task.env_kwargs).unwrapped
    if not (hasattr(env, "set_state") and hasattr(env, "model")):
        raise UserError(f"The simulator of task '{task.name}' cannot be put into a given state.")
    env.reset(seed=0)
    return env

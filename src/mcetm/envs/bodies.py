"""Bodies from observations: how a planar MuJoCo task looks in a state, also in one that a model predicts.

Observations of hopper, walker2d and halfcheetah are qpos without the position along the track, then qvel.
That position is found again by integrating the forward velocity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mcetm.envs.simulate import make_env
from mcetm.errors import UserError
from mcetm.tasks.registry import Task


class Body:
    """The capsules that a planar task's robot consists of."""

    def __init__(self, task: Task) -> None:
        env = make_env(task.env_id, task.env_kwargs).unwrapped
        model = getattr(env, "model", None)
        if model is None or model.nq + model.nv != task.obs_dim + 1:
            raise UserError(f"'{task.name}' is not a planar MuJoCo task whose poses can be drawn.")
        self._model, self._data, self._step = model, env.data, float(env.dt)
        self._parts = np.flatnonzero(model.geom_type == _CAPSULE)

    def positions(self, obs: Float[np.ndarray, "steps obs"]) -> Float[np.ndarray, "steps qpos"]:
        """Qpos of consecutive observations, the first one at 0 along the track."""
        joints = self._model.nq - 1
        velocity = obs[:, joints].astype(np.float64)
        moved = self._step * 0.5 * (velocity[1:] + velocity[:-1])
        track = np.concatenate([np.zeros(1), np.cumsum(moved)])
        return np.column_stack([track, obs[:, :joints]])

    @property
    def radii(self) -> Float[np.ndarray, " parts"]:
        """The thickness of every capsule."""
        return self._model.geom_size[self._parts, 0]

    def capsules(self, qpos: Float[np.ndarray, "steps qpos"]) -> Float[np.ndarray, "steps parts 2 2"]:
        """Both ends of every capsule, along the track and up."""
        import mujoco

        engine: Any = mujoco
        ends = []
        for pose in qpos:
            self._data.qpos[:] = pose
            engine.mj_kinematics(self._model, self._data)
            centre = self._data.geom_xpos[self._parts]
            axis = self._data.geom_xmat[self._parts].reshape(-1, 3, 3)[:, :, 2]
            half = axis * self._model.geom_size[self._parts, 1:2]
            ends.append(np.stack([centre - half, centre + half], axis=1)[..., [0, 2]])
        return np.array(ends)


_CAPSULE = 3
"""mjGEOM_CAPSULE; a number, so that the simulator is loaded only when a body is made."""

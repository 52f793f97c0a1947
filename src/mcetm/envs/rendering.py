"""Pictures by MuJoCo's own renderer, where the machine has a GL library that works without a screen.

The renderer lives in a process of its own: which GL library is used must be settled before MuJoCo is loaded,
and a broken one may take its process with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from mcetm.tasks.registry import Task

Frames = UInt8[np.ndarray, "frames height width 3"]
_LIBRARIES = ("egl", "osmesa")
_PATIENCE = 300
_SCRIPT = "import sys; from mcetm.envs import rendering; rendering._main(*sys.argv[1:])"


def render(task: Task, qpos: Float[np.ndarray, "frames qpos"], *, size: int) -> Frames | None:
    """A picture of every pose, the camera beside the robot; None where there is no GL library."""
    chosen = os.environ.get("MUJOCO_GL")
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "poses.npz", Path(folder) / "frames.npz"
        np.savez(given, qpos=qpos, size=size, env_id=task.env_id)
        command = [sys.executable, "-c", _SCRIPT, str(given), str(made)]
        for library in (chosen,) if chosen else _LIBRARIES:
            environment = {**os.environ, "MUJOCO_GL": library, "PYTHONPATH": os.pathsep.join(sys.path)}
            try:
                done = subprocess.run(  # noqa: S603 (our own module)
                    command, env=environment, capture_output=True, check=False, timeout=_PATIENCE
                )
            except subprocess.TimeoutExpired:
                continue
            if done.returncode == 0 and made.is_file():
                with np.load(made) as file:
                    return file["frames"]
    return None


def _main(given: str, made: str) -> None:
    """In the process of its own."""
    import mujoco

    from mcetm.envs.simulate import make_env

    engine: Any = mujoco
    with np.load(given) as file:
        qpos, size, env_id = file["qpos"], int(file["size"]), str(file["env_id"])
    env = make_env(env_id, {}).unwrapped
    camera = engine.MjvCamera()
    camera.distance, camera.azimuth, camera.elevation = 3.2, 90.0, -10.0
    frames = []
    with engine.Renderer(env.model, size, size) as renderer:
        for pose in qpos:
            env.data.qpos[:] = pose
            engine.mj_forward(env.model, env.data)
            camera.lookat[:] = (pose[0], 0.0, 0.7)
            renderer.update_scene(env.data, camera)
            frames.append(renderer.render().copy())
    np.savez_compressed(made, frames=np.array(frames))

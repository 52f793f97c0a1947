"""Films of one start: the ground truth and where several models take it, as in the paper's last figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcetm import UserError
from mcetm.envs import Body, render
from mcetm.tasks import get_task
from mcetm_experiments.rollouts.pictures import draw_poses, draw_strip, write_animation
from mcetm_experiments.rollouts.settings import PictureKind

CAST = {
    "MC-ETM": ("plain", "point"),
    "MC-ETM, low energy": ("plain", "selected"),
    "MC-ETM, fast": ("anchored", "point"),
    "standard ETM": ("standard", "point"),
    "MLP": ("mlp", "point"),
}
"""Rows below the ground truth: the model, and how it predicts."""


@dataclass(frozen=True)
class FilmConfig:
    """What is shown of a rollout."""

    steps: int = 100
    """Steps of the rollout that is filmed."""
    shown: tuple[int, ...] = (0, 5, 10, 20, 30, 40, 60, 80, 100)
    """Steps in the strip."""
    every: int = 4
    """Steps between pictures of the animation."""
    size: int = 130
    """Pixels of a picture's sides."""


def write_film(
    path: Path,
    task: str,
    level: str,
    parts: dict[str, dict[str, Any]],
    config: FilmConfig,
    pictures: PictureKind,
) -> str:
    """The strip and the animation of what has been run; how the pictures were made."""
    known = get_task(task)
    body = Body(known)
    paths = {"ground truth": np.array(parts["unchanged"]["ground truth"])}
    for name, (model, kind) in CAST.items():
        if model in parts:
            paths[name] = np.array(parts[model]["predictions"][kind]["film"])
    animated = range(0, config.steps + 1, config.every)
    taken = sorted({*config.shown, *animated})
    poses = {name: body.positions(obs)[taken] for name, obs in paths.items()}
    frames = None
    if pictures != "drawn":
        frames = render(known, np.concatenate([*poses.values()]), size=config.size)
        if frames is None and pictures == "mujoco":
            raise UserError(
                "MuJoCo cannot render here: there is no GL library that works without a screen (EGL or "
                "OSMesa); leave --pictures out to have the robot drawn."
            )
    made = "drawn" if frames is None else "mujoco"
    if frames is None:
        frames = np.concatenate([draw_poses(body, qpos, size=config.size) for qpos in poses.values()])
    rows = dict(zip(poses, np.split(frames, len(poses)), strict=True))
    picks = {name: dict(zip(taken, pictured, strict=True)) for name, pictured in rows.items()}
    draw_strip(path, picks, config.shown, f"{task}-{level}: the same start and actions")
    write_animation(path, picks, animated, milliseconds=80)
    return made

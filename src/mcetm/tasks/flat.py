"""Environments whose observations or actions have parts, as one vector each: laid out as their logs are."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from mcetm.console import one_line
from mcetm.errors import UserError
from mcetm.tasks.layout import Part, is_image


class FlatEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that observes and takes vectors, whatever it has inside."""

    def __init__(self, env: Any, name: str) -> None:
        super().__init__(env)
        self._obs = parts_of(env.observation_space, f"The environment {name} has observations")
        self._action = parts_of(env.action_space, f"The environment {name} has actions")
        self.observation_space = _box(env.observation_space, self._obs)
        self.action_space = _box(env.action_space, self._action)

    def reset(self, **more: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(**more)
        return flatten(obs, self._obs), info

    def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        """Take a step with a vector."""
        given = unflatten(np.asarray(action), self.env.action_space)
        obs, reward, terminated, truncated, info = self.env.step(given)
        return flatten(obs, self._obs), reward, terminated, truncated, info


def parts_of(space: Any, what: str, path: tuple[str | int, ...] = ()) -> list[Part]:
    """The arrays of a space, in the order of their layout; what is not made of numbers is refused."""
    if isinstance(space, spaces.Dict):
        return [part for key in sorted(space.spaces) for part in parts_of(space[key], what, (*path, key))]
    if isinstance(space, spaces.Tuple):
        return [part for i, inner in enumerate(space.spaces) for part in parts_of(inner, what, (*path, i))]
    where = f" ('{'/'.join(map(str, path))}')" if path else ""
    if not isinstance(space, spaces.Box):
        raise UserError(
            f"{what}{where} of the space {one_line(str(space), 100)}; only continuous ones are supported, "
            "a Box, alone or in a Dict or Tuple."
        )
    if is_image(space.shape, str(space.dtype)):
        raise UserError(
            f"{what}{where} that are images, of shape {space.shape}; only vectors of numbers are supported."
        )
    return [Part(path, space.shape)]


def flatten(value: Any, parts: list[Part]) -> np.ndarray:
    """A value of a space as one vector."""
    found = []
    for part in parts:
        inner = value
        for key in part.path:
            inner = inner[key]
        found.append(np.asarray(inner, np.float32).reshape(-1))
    return np.concatenate(found) if found else np.zeros(0, np.float32)


def unflatten(vector: np.ndarray, space: Any) -> Any:
    """A vector as a value of a space; the inverse of `flatten`."""
    taken = 0

    def take(space: Any) -> Any:
        nonlocal taken
        if isinstance(space, spaces.Dict):
            return {key: take(space[key]) for key in sorted(space.spaces)}
        if isinstance(space, spaces.Tuple):
            return tuple(take(inner) for inner in space.spaces)
        size = int(np.prod(space.shape))
        taken += size
        return vector[taken - size : taken].reshape(space.shape).astype(space.dtype)

    return take(space)


def flat(env: Any, name: str) -> Any:
    """The environment itself where it has vectors already, else one that does."""
    return env if _is_flat(env.observation_space) and _is_flat(env.action_space) else FlatEnv(env, name)


def _is_flat(space: Any) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def _box(space: Any, parts: list[Part]) -> spaces.Box:
    bounds = []
    for side in ("low", "high"):
        value = [_bound(space, part, side) for part in parts]
        bounds.append(np.concatenate(value) if value else np.zeros(0, np.float32))
    return spaces.Box(bounds[0], bounds[1], dtype=np.float32)


def _bound(space: Any, part: Part, side: str) -> np.ndarray:
    """One side of the bounds of a part."""
    for key in part.path:
        space = space[key]
    return np.asarray(getattr(space, side), np.float32).reshape(-1)

"""Two tanks in a row, whose second level is to be held: a small process like those that people keep logs of.

A pump fills the upper tank, a valve lets it run into the lower one, and that one runs out by itself and by a
demand that changes slowly. Levels are shares of a full tank. A tank that overflows ends the episode.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

TIME_LIMIT = 300
_PUMP, _VALVE, _OUTLET, _DEMAND = 0.05, 0.08, 0.02, 0.02
"""Most that flows in a step, in full tanks: by pump, valve and outlet at a full level, and by the demand."""
_OVERFLOW = -20.0


class TwoTanks(gymnasium.Env[np.ndarray, np.ndarray]):
    """Observations: both levels, the wanted lower level, the demand. Actions: pump and valve, 0 to 1."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own declaration)

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 2.0, (4,), np.float32)
        self.action_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
        self._state = np.zeros(4)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Half-filled tanks, a level to be held, and some demand."""
        super().reset(seed=seed)
        draw = self.np_random.uniform
        self._state = np.array([draw(0.2, 0.7), draw(0.2, 0.7), draw(0.3, 0.8), draw(0.2, 0.8)])
        return self._state.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Let it flow for one step; the cost is the distance from the wanted level, and some for the pump."""
        pump, valve = np.clip(np.asarray(action, np.float64), 0.0, 1.0)
        upper, lower, wanted, demand = self._state
        between = min(upper, _VALVE * valve * np.sqrt(upper))
        out = min(lower, _OUTLET * np.sqrt(lower) + _DEMAND * demand)
        demand = float(np.clip(demand + 0.02 * self.np_random.standard_normal(), 0.0, 1.0))
        upper, lower = upper + _PUMP * pump - between, lower + between - out
        self._state = np.array([upper, lower, wanted, demand])
        overflows = bool(upper > 1.0 or lower > 1.0)
        reward = -abs(lower - wanted) - 0.05 * pump + (_OVERFLOW if overflows else 0.0)
        return self._state.astype(np.float32), float(reward), overflows, False, {}


gymnasium.register("TwoTanks-v0", entry_point=f"{__name__}:TwoTanks", max_episode_steps=TIME_LIMIT)

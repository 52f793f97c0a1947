"""Analytic behaviour policies: no weights, no training, known by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from mcetm.tasks.policy import BehaviourPolicy

_GRAVITY_TORQUE = 5.0  # m g l / 2 of Gymnasium's pendulum: m = l = 1, g = 10
_INERTIA = 1.0 / 3.0
_MAX_TORQUE = 2.0


@dataclass(frozen=True)
class SwingUp:
    """Energy shaping for Gymnasium's pendulum: push along the motion while energy is missing.

    It brings the pendulum's energy to that of standing upright, and by itself does not balance
    there: it swings through the top again and again. With `catch`, a linear controller holds the
    pendulum once it comes near the top at about the right energy, which is close to optimal.
    """

    gain: float = 1.0
    noise: float = 0.0
    """Standard deviation of Gaussian noise on the torque."""
    catch: bool = False

    @property
    def checksum(self) -> str:
        """Identity of the policy."""
        return repr(self)

    def sample(
        self, obs: Float32[np.ndarray, "batch 3"], rng: np.random.Generator
    ) -> Float32[np.ndarray, "batch 1"]:
        """Torques for observations (cos, sin, angular velocity); the angle is 0 upright."""
        cosine, sine, velocity = obs.T.astype(np.float64)
        energy = 0.5 * _INERTIA * velocity**2 + _GRAVITY_TORQUE * cosine
        missing = _GRAVITY_TORQUE - energy
        torque = self.gain * missing * np.where(velocity >= 0.0, 1.0, -1.0)
        if self.catch:
            angle = np.arctan2(sine, cosine)
            near = (cosine > 0.5) & (np.abs(missing) < 1.5)
            torque = np.where(near, -8.0 * angle - 2.0 * velocity, torque)
        torque += self.noise * rng.standard_normal(len(obs))
        return np.clip(torque, -_MAX_TORQUE, _MAX_TORQUE).astype(np.float32)[:, None]


@dataclass(frozen=True)
class TankOperator:
    """A person at the two tanks: opens pump and valve as far as the lower level is off, not very well."""

    gain: float = 2.0
    noise: float = 0.25
    """Standard deviation of Gaussian noise on both actions."""

    @property
    def checksum(self) -> str:
        """Identity of the policy."""
        return repr(self)

    def sample(
        self, obs: Float32[np.ndarray, "batch 4"], rng: np.random.Generator
    ) -> Float32[np.ndarray, "batch 2"]:
        """Pump and valve for observations (upper level, lower level, wanted level, demand)."""
        upper, lower, wanted, _ = obs.T.astype(np.float64)
        valve = 0.5 + self.gain * (wanted - lower)
        pump = 0.5 + self.gain * (0.6 - upper)
        action = np.stack([pump, valve], axis=1) + self.noise * rng.standard_normal((len(obs), 2))
        return np.clip(action, 0.0, 1.0).astype(np.float32)


CONTROLLERS: dict[str, tuple[str, Callable[[], BehaviourPolicy]]] = {
    "swing-up": ("pendulum", lambda: SwingUp(catch=True)),
    "swing-up-noisy": ("pendulum", lambda: SwingUp(noise=1.0)),
    "tank-operator": ("tank", lambda: TankOperator()),
}
"""By name: the task a controller is written for, and how to make it."""

"""When an episode ends by itself: a rule that is plain data, usable on NumPy and JAX arrays alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class HealthyBox:
    """Terminate unless every component of the raw next observation lies strictly inside its interval.

    One rule serves the three locomotion tasks of the paper. Strict inequalities make NaN and
    infinity unhealthy without a special case: no comparison with NaN holds, and infinity is not
    below infinity.
    """

    intervals: Mapping[int, tuple[float, float]] = field(hash=False)
    """Interval of a component, by index."""

    default: tuple[float, float] = (-float("inf"), float("inf"))
    """Interval of every component not named in `intervals`."""

    def bounds(self, width: int) -> tuple[list[float], list[float]]:
        """Lower and upper limits for observations of this width."""
        pairs = [self.intervals.get(index, self.default) for index in range(width)]
        return [low for low, _ in pairs], [high for _, high in pairs]

    def __call__(self, next_obs: Any) -> Any:
        """Whether each row of raw `next_obs` ends its episode; leading axes are kept."""
        healthy = next_obs[..., 0] == next_obs[..., 0]  # False for NaN only; also fixes the result's shape
        low, high = self.bounds(next_obs.shape[-1])
        for index in range(next_obs.shape[-1]):
            component = next_obs[..., index]
            healthy = healthy & (component > low[index]) & (component < high[index])
        return ~healthy

"""The paper's didactic transition function (appendix "Didactic Experiment Setup"), and measures for it.

    f(s, a) = 1 − sin a   where |s| < ½ and |a| < ½
              1           where s ≥ ½
              −1          where s ≤ −½
              0           elsewhere

It jumps on the lines s = ±½ and, between them, on a = ±½. It is single-valued: what the paper calls two modes
are the values on either side of a jump, and a state between them never occurs.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from mcetm.data import Metadata, Transitions

NOISE = 0.05
"""Standard deviation of s' around f(s, a)."""
NEAR = 0.05
"""What counts as near a discontinuity."""
IMPOSSIBLE = 4.0
"""Standard deviations from every value f takes nearby beyond which a state is impossible."""
_EDGE = 0.5

Points = Float[np.ndarray, "*points"]


def didactic_function(state: Points, action: Points) -> Points:
    """f(s, a), the next state before noise."""
    inside = (np.abs(state) < _EDGE) & (np.abs(action) < _EDGE)
    outside = np.where(state >= _EDGE, 1.0, np.where(state <= -_EDGE, -1.0, 0.0))
    return np.where(inside, np.sin(-action) + 1.0, outside)


def draw_transitions(count: int, *, noise: float = NOISE, seed: int = 0) -> Transitions:
    """A log whose states and actions are standard normal; every row is an episode of its own."""
    rng = np.random.default_rng(seed)
    state, action, error = rng.normal(size=(3, count))
    return as_log(
        state[:, None], action[:, None], (didactic_function(state, action) + noise * error)[:, None]
    )


def as_log(
    obs: Float[np.ndarray, "rows obs"],
    action: Float[np.ndarray, "rows action"],
    next_obs: Float[np.ndarray, "rows obs"],
) -> Transitions:
    """Unrelated transitions as a log of one-step episodes without rewards."""
    single = np.float32
    return Transitions.from_arrays(
        obs.astype(single),
        action.astype(single),
        next_obs=next_obs.astype(single),
        terminated=np.zeros(len(obs), bool),
        truncated=np.ones(len(obs), bool),
        metadata=Metadata(source="the didactic function"),
    )


def uniform_grid(size: int) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """States and actions of a size × size grid over [−1, 1]², row by row of one state each.

    An even size keeps its points off the discontinuities, where f is a matter of ≥ against >.
    """
    ticks = np.linspace(-1.0, 1.0, size)
    state, action = np.meshgrid(ticks, ticks, indexing="ij")
    return state.ravel(), action.ravel()


def jump_distance(state: Points, action: Points) -> Points:
    """How far (s, a) lies from the nearest discontinuity."""
    beyond = np.maximum(np.abs(state) - _EDGE, 0.0)
    vertical = np.abs(np.abs(state) - _EDGE)
    return np.minimum(vertical, np.hypot(beyond, np.abs(action) - _EDGE))


def distance_to_values(
    predicted: Float[np.ndarray, "*more points"],
    state: Float[np.ndarray, " points"],
    action: Float[np.ndarray, " points"],
    radius: float = NEAR,
) -> Float[np.ndarray, "*more points"]:
    """How far each prediction lies from every value that f takes within `radius` of its (s, a)."""
    # The disc around (s, a) reaches |s| < ½ where `beyond` < radius, over actions within ± `reach`.
    beyond = np.maximum(np.abs(state) - _EDGE, 0.0)
    central = beyond < radius
    reach = np.sqrt(np.maximum(radius**2 - beyond**2, 0.0))
    low, high = np.maximum(action - reach, -_EDGE), np.minimum(action + reach, _EDGE)
    wave = np.maximum(np.maximum(1.0 - np.sin(high) - predicted, predicted - 1.0 + np.sin(low)), 0.0)
    distance = np.where(central & (low < high), wave, np.inf)
    plateaus = (
        (1.0, state + radius >= _EDGE),
        (-1.0, state - radius <= -_EDGE),
        (0.0, central & (np.abs(action) + reach >= _EDGE)),
    )
    for value, reached in plateaus:
        distance = np.minimum(distance, np.where(reached, np.abs(predicted - value), np.inf))
    return distance


def impossible(
    predicted: Float[np.ndarray, "*more points"],
    state: Float[np.ndarray, " points"],
    action: Float[np.ndarray, " points"],
) -> Bool[np.ndarray, "*more points"]:
    """Which predictions lie in no mode: more than 4 noise spreads from every value f takes within 0.05."""
    return distance_to_values(predicted, state, action) > IMPOSSIBLE * NOISE

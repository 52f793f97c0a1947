"""What acts where a policy is not trusted: an action of somebody's own, looked at before it is given out."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float32

from mcetm.errors import UserError

_ROUNDING = 1e-5
"""Share of the range of actions by which rounding may carry one over its bound."""

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""The least and the largest value of each action."""


def fallback_actions(
    fallback: Any,
    obs: Float32[np.ndarray, "rows obs"],
    instead_of: Float32[np.ndarray, "rows action"],
    bounds: Bounds,
) -> Float32[np.ndarray, "*rows action"]:
    """The fallback's actions for these rows: one for all, or one for each, none beyond the bounds."""
    found = fallback(obs) if callable(fallback) else fallback
    try:
        given = np.asarray(found)
        if given.dtype.kind not in "biuf":
            raise TypeError
        with np.errstate(over="ignore"):  # what is too large is infinite, and refused as that
            action = given.astype(np.float32)
    except (TypeError, ValueError):
        raise UserError("The fallback gives no action: it is not made of numbers.") from None
    if action.shape not in (instead_of.shape, instead_of.shape[1:]):
        raise UserError(
            f"The fallback gives actions of the shape {action.shape}, and the policy's are "
            f"{instead_of.shape}."
        )
    low, high = np.array(bounds)
    room = _ROUNDING * (high - low)
    # Written so that what is not a number lies outside.
    outside = ~((action >= low - room) & (action <= high + room))
    if outside.any():
        number = int(np.argwhere(outside)[0][-1])
        raise UserError(
            f"The fallback gives {action[outside][0]:g} for action {number}, which has to be from "
            f"{low[number]:g} to {high[number]:g}."
        )
    return action

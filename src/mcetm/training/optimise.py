"""One gradient step: where Optax meets Equinox."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import optax

_Model = TypeVar("_Model")


Schedule = Literal["cosine", "constant"]


def adam(learning_rate: float, schedule: Schedule, steps: int) -> optax.GradientTransformation:
    """Adam whose learning rate stays, or falls to nothing over the steps."""
    return optax.adam(
        optax.cosine_decay_schedule(learning_rate, steps) if schedule == "cosine" else learning_rate
    )


def begin(optimiser: optax.GradientTransformation, model: Any) -> optax.OptState:
    """The optimiser's state for a model's arrays."""
    return optimiser.init(eqx.filter(model, eqx.is_inexact_array))


def descend(
    optimiser: optax.GradientTransformation, model: _Model, gradient: Any, moments: optax.OptState
) -> tuple[_Model, optax.OptState]:
    """The model and the optimiser's state after one step against the gradient."""
    # Optax raises floats to integer powers, which strict promotion (on in our tests) would refuse.
    with jax.numpy_dtype_promotion("standard"):
        updates, moments = optimiser.update(gradient, moments)
    return eqx.apply_updates(model, updates), moments

"""One gradient step: where Optax meets Equinox. Scales are never trained."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import optax

from mcetm.nn.scaling import Scaling

_Model = TypeVar("_Model")


Schedule = Literal["cosine", "constant"]


def adam(learning_rate: float, schedule: Schedule, steps: int) -> optax.GradientTransformation:
    """Adam whose learning rate stays, or falls to nothing over the steps."""
    return optax.adam(
        optax.cosine_decay_schedule(learning_rate, steps) if schedule == "cosine" else learning_rate
    )


def trained(model: _Model) -> _Model:
    """The arrays that learning changes: all numbers but those of scales."""
    is_scale = lambda part: isinstance(part, Scaling)  # noqa: E731
    keep = lambda part: None if is_scale(part) or not eqx.is_inexact_array(part) else part  # noqa: E731
    return jax.tree_util.tree_map(keep, model, is_leaf=is_scale)


def init_optimiser(optimiser: optax.GradientTransformation, model: Any) -> optax.OptState:
    """The optimiser's state for what it trains."""
    return optimiser.init(trained(model))


def apply_gradient(
    optimiser: optax.GradientTransformation, model: _Model, gradient: Any, opt_state: optax.OptState
) -> tuple[_Model, optax.OptState]:
    """The model and the optimiser's state after one step against the gradient."""
    # Optax raises floats to integer powers, which strict promotion (on in our tests) would refuse.
    with jax.numpy_dtype_promotion("standard"):
        updates, opt_state = optimiser.update(trained(gradient), opt_state)
    return eqx.apply_updates(model, updates), opt_state

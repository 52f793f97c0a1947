"""One gradient step: where Optax meets Equinox. Scales are never trained."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from mcetm.nn.scaling import Scaling
from mcetm.training.devices import are_several

_Model = TypeVar("_Model")


Schedule = Literal["cosine", "constant"]


def adam(learning_rate: float, schedule: Schedule, steps: int) -> optax.GradientTransformation:
    """Adam whose learning rate stays, or falls to nothing over the steps."""
    return adam_at(
        optax.cosine_decay_schedule(learning_rate, steps) if schedule == "cosine" else learning_rate
    )


def adam_at(learning_rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
    """Optax's Adam. In a program of several devices, its quotients are products.

    On one device, the compiler makes products of quotients by one number for many; of a program that is
    shared out it does not. Numbers would then differ in the last digit from those of one device.
    """
    if not are_several():
        return optax.adam(learning_rate)
    begin = optax.scale_by_adam().init

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        mu = optax.tree.update_moment(updates, state.mu, _FIRST, 1)
        nu = optax.tree.update_moment_per_elem_norm(updates, state.nu, _SECOND, 2)
        count: Any = optax.safe_increment(state.count)
        first, second = 1.0 - _FIRST**count, 1.0 - _SECOND**count

        def step(m: Any, v: Any) -> Any:
            return None if m is None else _over(m, first) / (jnp.sqrt(_over(v, second)) + _SMALL)

        steps = jax.tree_util.tree_map(step, mu, nu, is_leaf=lambda leaf: leaf is None)
        return steps, optax.ScaleByAdamState(count=count, mu=mu, nu=nu)

    return optax.chain(
        optax.GradientTransformation(begin, update), optax.scale_by_learning_rate(learning_rate)
    )


_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8
"""Optax's defaults, as published."""


def _over(moment: Array, correction: Array) -> Array:
    """The quotient; a single number is none of many."""
    return moment * (1.0 / correction) if moment.ndim else moment / correction


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

"""A chunk of steps as one compiled program, and the guard against numbers in it that are not finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from mcetm.errors import UserError
from mcetm.training.checkpoint import arrays_of, list_checkpoints
from mcetm.training.keeping import Saving
from mcetm.training.metrics import Metrics, mean_over_steps


class DivergenceError(UserError):
    """Training met a number that is not finite; says the step and the array."""


@eqx.filter_jit
def run_chunk(
    step: Callable[..., tuple[Any, Metrics]],
    moving: Any,
    still: Any,
    data: Any,
    key: PRNGKeyArray,
    start: Int[Array, ""],
    length: int,
    period: int,
    first: int,
) -> tuple[Any, dict[str, Array], Int[Array, ""], list[Bool[Array, ""]]]:
    """`length` steps: what moves after them, mean metrics, the first bad step, and which arrays are finite.

    `first` is the turn of the first step.
    """
    is_none = lambda leaf: leaf is None  # noqa: E731
    moves = jax.tree_util.tree_map(lambda leaf: leaf is not None, moving, is_leaf=is_none)

    def one(carry: Any, index: Array, turn: int) -> tuple[Any, Array]:
        nonlocal unravel
        turns = {"turn": turn} if period > 1 else {}
        step_key = jax.random.fold_in(key, index)
        following, metrics = step(eqx.combine(carry, still), data, key=step_key, **turns)
        # One array for all metrics: each would be another small kernel at every step.
        noted, unravel = ravel_pytree(metrics)
        return eqx.filter(following, moves), noted

    def several(carry: Any, indices: Int[Array, " steps"]) -> tuple[Any, Array]:
        noted = []
        for i in range(indices.shape[0]):
            carry, found = one(carry, indices[i], (first + i) % period)
            noted.append(found)
        return carry, jnp.stack(noted)

    unravel = lambda noted: {}  # noqa: E731
    whole, indices = length - length % period, start + jnp.arange(length)
    parts = []
    if whole:
        moving, noted = jax.lax.scan(several, moving, indices[:whole].reshape(-1, period))
        parts.append(noted.reshape(whole, -1))
    if whole < length:
        moving, noted = several(moving, indices[whole:])
        parts.append(noted)
    noted = jnp.concatenate(parts)
    metrics = jax.vmap(unravel)(noted)
    means = {name: mean_over_steps(values) for name, values in metrics.items()}
    good = jnp.isfinite(noted).all(axis=1)
    bad_step = jnp.where(good.all(), -1, jnp.argmin(good))
    finite = [jnp.isfinite(leaf).all() for leaf in _inexact(moving).values()]
    return moving, means, bad_step, finite


def parted(state: Any, reads: Callable[[Any], Any] | None) -> tuple[Any, Any]:
    """The arrays that steps change, and all the rest."""
    still = set() if reads is None else {id(leaf) for leaf in jax.tree_util.tree_leaves(reads(state))}
    return eqx.partition(state, lambda leaf: eqx.is_array(leaf) and id(leaf) not in still)


def firm_state(state: Any) -> Any:
    """The same state without weak types and with no array in two places.

    The first step loses weak types, and all would be compiled again; memory can be used again only once.
    """
    seen: set[int] = set()

    def firm(leaf: Any) -> Any:
        if getattr(leaf, "weak_type", False):
            return jax.lax.convert_element_type(leaf, leaf.dtype)
        if eqx.is_array(leaf) and id(leaf) in seen:
            return jnp.copy(leaf)
        seen.add(id(leaf))
        return leaf

    return jax.tree_util.tree_map(firm, state)


def _inexact(tree: Any) -> dict[str, Any]:
    return {name: leaf for name, leaf in arrays_of(tree).items() if jnp.issubdtype(leaf.dtype, jnp.inexact)}


def guard(
    state: Any,
    metrics: Mapping[str, Any],
    bad_step: int,
    finite: list[Array],
    done: int,
    length: int,
    saving: Saving | None,
) -> None:
    """Stop at the first chunk with a number that is not finite.

    The mean of finite numbers can be infinite, so metrics are looked at for themselves.
    """
    broken = [name for name, good in zip(_inexact(state), finite, strict=True) if not bool(good)]
    broken += [f"metric {name}" for name, value in metrics.items() if not np.isfinite(value).all()]
    if bad_step < 0 and not broken:
        return
    where = f"at step {done + bad_step + 1}" if bad_step >= 0 else f"in steps {done + 1} to {done + length}"
    kept = list_checkpoints(saving.checkpoints) if saving is not None else []
    last = f"; the last good checkpoint is {kept[-1]}" if kept else ""
    what = broken[0] if broken else "metric of that step"
    raise DivergenceError(f"Training diverged {where}: '{what}' is not finite{last}.")

"""What is written for one (s, a), asked about many: any leading batch axes, of JAX's or NumPy's arrays."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, PRNGKeyArray

from mcetm.errors import UserError


def over_batch(
    one: Any, model: Any, arrays: tuple[ArrayLike, ...], *more: Any, key: PRNGKeyArray | None = None
) -> Any:
    """What a function of one example gives for any leading axes; each row has a key of its own."""
    key = _key(key)
    columns = [_column(array) for array in arrays]
    if any(column.ndim == 0 for column in columns):
        raise UserError("States and actions are vectors, here one is a single number.")
    try:
        lead = jnp.broadcast_shapes(*(column.shape[:-1] for column in columns))
    except ValueError:
        shapes = ", ".join(str(column.shape) for column in columns)
        raise UserError(f"States and actions must have the same batch axes, and have {shapes}.") from None
    found = [column.shape[-1] for column in columns]
    if model.widths is not None and found != [*model.widths, model.widths[0]][: len(found)]:
        obs, action = model.widths
        raise UserError(
            f"This model is of states of {obs} and actions of {action} numbers, and was given "
            f"{' and '.join(map(str, found))}."
        )
    if not lead:
        return one(model, *columns, *more, key=key)
    wide = [jnp.broadcast_to(column, (*lead, column.shape[-1])) for column in columns]
    # Written out: a log without actions has columns of no width.
    rows = [column.reshape(math.prod(lead), column.shape[-1]) for column in wide]
    found = _over_rows(one, model, rows, more, key)
    return jax.tree_util.tree_map(lambda leaf: leaf.reshape(*lead, *leaf.shape[1:]), found)


def _key(key: Any) -> PRNGKeyArray:
    """The key that was given, old or new style; key 0 where none was."""
    if key is None:
        return jax.random.key(0)
    new = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not new and getattr(key, "dtype", None) != jnp.uint32:
        raise UserError("key= should be a key of JAX, such as jax.random.key(0).")
    return key


def _column(array: ArrayLike) -> Array:
    """States or actions in single precision."""
    if isinstance(array, jax.Array):  # tracers too
        return array.astype(jnp.float32)
    try:
        found = np.asarray(array)
        if found.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise UserError(
            f"States and actions are arrays of numbers, and this {type(array).__name__} is none."
        ) from None
    return jnp.asarray(found, jnp.float32)


def batched(one: Callable[..., Any], arrays: int = 2, *, needs_key: bool = False) -> Callable[..., Any]:
    """A method for one (s, a) as one for any leading batch axes, with key 0 where none is given nor needed.

    `arrays` says how many of its arguments are vectors with such axes.
    """
    parameters = inspect.signature(one).parameters.values()
    signature = inspect.Signature([p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD])
    takes_key = any(p.name == "key" for p in parameters)

    def of_one(model: Any, *given: Any, key: PRNGKeyArray) -> Any:
        return one(model, *given, key=key) if takes_key else one(model, *given)

    @functools.wraps(one)
    def method(self: Any, *given: Any, key: Any = None, **named: Any) -> Any:
        if key is None and needs_key and takes_key:
            raise TypeError(f"{one.__name__}() needs key=, a key of JAX")
        given = signature.bind(self, *given, **named).args[1:]
        return over_batch(of_one, self, given[:arrays], *given[arrays:], key=key)

    return method


@eqx.filter_jit
def _over_rows(one: Any, model: Any, rows: list[Array], more: tuple[Any, ...], key: PRNGKeyArray) -> Any:
    keys = jax.random.split(key, len(rows[0]))
    return jax.vmap(lambda row, k: one(model, *row, *more, key=k))(rows, keys)

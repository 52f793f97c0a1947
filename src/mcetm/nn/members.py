"""Ensembles as one module whose arrays share a leading axis of members."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray

from mcetm.compilation import quick_options

_Tree = TypeVar("_Tree")


def make_at_once(make: Callable[..., _Tree], *given: Any) -> _Tree:
    """What `make` makes of these arrays, by one program where that is worth it.

    Step by step, every shape of random numbers is a program of its own, and its compiler takes a second over
    rounds that run once. The numbers are the same, bit for bit. Where the compiler hurries anyway, steps are
    quicker, for the next network uses them again.
    """
    if not (options := quick_options()):
        return make(*given)
    return eqx.filter_jit(make, compiler_options=options)(*given)  # pyright: ignore[reportCallIssue]


def make_members(make: Callable[..., _Tree], *given: Any, network: Any = None) -> _Tree:
    """Members that `make` makes, each of its own part of these arrays, on a leading axis.

    A network of the user's own may need numbers while it is made, which a program does not have.
    """
    together = eqx.filter_vmap(make)
    return make_at_once(together, *given) if network is None else together(*given)


def take_members(tree: _Tree, index: Int[Array, "*chosen"] | slice | int) -> _Tree:
    """The chosen member, or several of them on a leading axis."""
    return jax.tree_util.tree_map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def member_count(tree: Any) -> int:
    """How many members there are."""
    return next(leaf.shape[0] for leaf in jax.tree_util.tree_leaves(eqx.filter(tree, eqx.is_array)))


def member_keys(key: PRNGKeyArray, count: int) -> Key[Array, " members"]:
    """A key for each member, the same for a member whatever company it is in."""
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))

"""Ensembles as one module whose arrays share a leading axis of members."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray

_Tree = TypeVar("_Tree")


def take_members(tree: _Tree, index: Int[Array, "*chosen"] | slice | int) -> _Tree:
    """The chosen member, or several of them on a leading axis."""
    return jax.tree_util.tree_map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


def member_count(tree: Any) -> int:
    """How many members there are."""
    return next(leaf.shape[0] for leaf in jax.tree_util.tree_leaves(eqx.filter(tree, eqx.is_array)))


def member_keys(key: PRNGKeyArray, count: int) -> Key[Array, " members"]:
    """A key for each member, the same for a member whatever company it is in."""
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))

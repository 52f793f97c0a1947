"""Several devices for one training: seeds, or members, are shared out among them.

What learns on its own lies on a leading axis, so that each device has some of it, and nothing passes between
them while they learn. The log, and the world that policies imagine in, are on every device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mcetm.errors import UserError

_AXIS = "lanes"
_chosen: ContextVar[tuple[Any, ...]] = ContextVar("devices", default=())


@contextlib.contextmanager
def on_devices(devices: int | Sequence[Any] | None) -> Iterator[None]:
    """Train on these devices inside, or on the first so many; None leaves it to JAX, which takes one."""
    if devices is None:
        yield
        return
    known = jax.local_devices()
    if isinstance(devices, int) and not 1 <= devices <= len(known):
        raise UserError(f"There are {len(known)} devices here, so {devices} cannot be used (devices=).")
    token = _chosen.set(tuple(known[:devices] if isinstance(devices, int) else devices))
    try:
        yield
    finally:
        _chosen.reset(token)


def mesh_for(lanes: int | None) -> Mesh | None:
    """The devices for so many that learn on their own, each with as many; None where one has them all."""
    devices = _chosen.get()
    if lanes is None or not devices:
        return None
    count = max(n for n in range(1, len(devices) + 1) if lanes % n == 0)
    # A single device is worth a mesh too where it is not the one that JAX would take.
    return None if count == 1 and devices[0] == jax.local_devices()[0] else Mesh(devices[:count], (_AXIS,))


def spread(tree: Any, mesh: Mesh | None) -> Any:
    """Every array shared out along its leading axis."""
    return tree if mesh is None else _placed(tree, NamedSharding(mesh, PartitionSpec(_AXIS)))


def repeated(tree: Any, mesh: Mesh | None) -> Any:
    """Every array whole on every device."""
    return tree if mesh is None else _placed(tree, NamedSharding(mesh, PartitionSpec()))


def gathered(tree: Any, mesh: Mesh | None) -> Any:
    """Every array where JAX keeps arrays, free to go wherever it is needed."""
    if mesh is None:
        return tree

    def back(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            words = jnp.asarray(np.asarray(jax.random.key_data(leaf)))
            return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
        return jnp.asarray(np.asarray(leaf))

    return jax.tree_util.tree_map(back, tree)


def _placed(tree: Any, sharding: NamedSharding) -> Any:
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, sharding), rest)

"""Several devices for one training: they share its seeds, or its members, and the rows of the log if asked.

What learns on its own lies on a leading axis, so that each device has some of it, and nothing passes between
them while they learn. The world that policies imagine in is on every device, and so is the log; or each of
them has a part of its rows, and minibatches are put together from all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mcetm.errors import UserError
from mcetm.training.batches import Batch

_AXIS = "lanes"


class _Choice(NamedTuple):
    devices: tuple[Any, ...] = ()
    share_rows: bool = False


_NONE = _Choice()
_chosen: ContextVar[_Choice] = ContextVar("devices", default=_NONE)


@contextlib.contextmanager
def on_devices(devices: int | Sequence[Any] | None, *, share_rows: bool = False) -> Iterator[None]:
    """Train on these devices inside, or on the first so many; None leaves it to JAX, which takes one.

    With `share_rows` each has a part of the log's rows, and not all of them.
    """
    if devices is None:
        if share_rows:
            raise UserError("share_rows= is for several devices; say which (devices=).")
        yield
        return
    known = jax.local_devices()
    if isinstance(devices, bool) or (
        not isinstance(devices, int) and any(not isinstance(one, jax.Device) for one in devices)
    ):
        raise UserError(f"devices= is a number of devices or a list of JAX's own, not {devices!r:.100}.")
    if isinstance(devices, int) and not 1 <= devices <= len(known):
        raise UserError(f"There are {len(known)} devices here, so {devices} cannot be used (devices=).")
    token = _chosen.set(_Choice(tuple(known[:devices] if isinstance(devices, int) else devices), share_rows))
    try:
        yield
    finally:
        _chosen.reset(token)


def are_several() -> bool:
    """Whether a training may have several devices."""
    return len(_chosen.get().devices) > 1


def mesh_for(lanes: int | None) -> Mesh | None:
    """The devices for so many that learn on their own, each with as many; None where one has them all.

    What does not consist of lanes is one device's work, unless the log is on all of them.
    """
    devices, share_rows = _chosen.get()
    if not devices or (lanes is None and not share_rows):
        return None
    many = len(devices) if lanes is None else lanes
    count = max(n for n in range(1, len(devices) + 1) if many % n == 0)
    # A single device is worth a mesh too where it is not the one that JAX would take.
    return None if count == 1 and devices[0] == jax.local_devices()[0] else Mesh(devices[:count], (_AXIS,))


def spread(tree: Any, mesh: Mesh | None, lanes: int | None) -> Any:
    """Every array shared out along its leading axis, if that is one of lanes."""
    if mesh is None:
        return tree
    return _placed(tree, NamedSharding(mesh, PartitionSpec() if lanes is None else PartitionSpec(_AXIS)))


def supplier(mesh: Mesh | None) -> Callable[[Any], Any]:
    """Puts the data of steps on the devices: whole on each, or the rows of the log shared out among them."""
    if mesh is None:
        return lambda data: data
    whole, shares = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(_AXIS))
    if not _chosen.get().share_rows:
        return lambda data: _placed(data, whole)

    def is_log(part: Any) -> bool:
        return isinstance(part, Batch)

    def place(part: Any) -> Any:
        return _placed(part.filled_up(mesh.size), shares) if is_log(part) else _placed(part, whole)

    return lambda data: jax.tree_util.tree_map(place, data, is_leaf=is_log)


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

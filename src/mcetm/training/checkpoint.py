"""Checkpoints: one safetensors file each, complete or absent, checked against damage and mix-ups.

The header (safetensors' metadata) holds, as JSON, the configuration, the step, the paths and kinds of all
arrays and a checksum over their bytes. No pickle anywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mcetm.errors import UserError
from mcetm.files import write_bytes

_FORMAT = 1
_NAME = re.compile(r"step-(\d{12})\.safetensors")
_KEY = "prng-key:"
"""Marks a typed PRNG key, of which the raw words are stored."""


@dataclass(frozen=True)
class Checkpoint:
    """A state read back, and where in the job it stood."""

    state: Any
    step: int
    extra: Mapping[str, Any]


def arrays_of(tree: Any) -> dict[str, Any]:
    """All array leaves of a tree by their path, such as `model/layers/0/weight`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_path(path): leaf for path, leaf in leaves if eqx.is_array(leaf)}


def _path(path: tuple[Any, ...]) -> str:
    return "/".join(str(getattr(p, "name", getattr(p, "key", getattr(p, "idx", p)))) for p in path)


def save_checkpoint(
    folder: Path,
    state: Any,
    *,
    step: int,
    config: Mapping[str, Any],
    extra: Mapping[str, Any] | None = None,
    keep: int = 2,
) -> Path:
    """Write `folder/step-N.safetensors` and remove all but the newest `keep`."""
    from safetensors.numpy import save

    stored: dict[str, np.ndarray] = {}
    kinds: dict[str, str] = {}
    for name, leaf in arrays_of(state).items():
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            kinds[name] = _KEY + str(jax.random.key_impl(leaf))
            leaf = jax.random.key_data(leaf)
        stored[name] = np.asarray(leaf, order="C")
    header = {
        "format": _FORMAT,
        "step": step,
        "config": config,
        "extra": dict(extra or {}),
        "keys": kinds,
        "checksum": _checksum(stored),
    }
    path = folder / f"step-{step:012d}.safetensors"
    write_bytes(path, save(stored, metadata={"mcetm": json.dumps(header)}))
    for old in list_checkpoints(folder)[:-keep]:
        old.unlink(missing_ok=True)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def load_checkpoint(path: Path, like: Any, *, config: Mapping[str, Any]) -> Checkpoint:
    """Read a checkpoint into the structure of `like`, a freshly made state of the same configuration."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["mcetm"])
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        step, kinds, extra = int(header["step"]), dict(header["keys"]), dict(header["extra"])
        if header["format"] != _FORMAT:
            raise UserError(f"{path} is of another version of mcetm (format {header['format']}).")
        intact = header["checksum"] == _checksum(stored)
    except FileNotFoundError:
        raise UserError(f"There is no checkpoint {path}.") from None
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"The checkpoint {path} is damaged: {type(error).__name__}.") from None
    if not intact:
        raise UserError(f"The checkpoint {path} is damaged: its checksum does not match.")
    difference = _difference(header["config"], json.loads(json.dumps(config)))
    if difference:
        raise UserError(f"The checkpoint {path} belongs to another configuration: {difference}.")
    return Checkpoint(_fill(path, like, stored, kinds), step, extra)


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _difference(stored: Any, wanted: Any, place: str = "") -> str:
    """The first place where two configurations differ, in words."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        for name in sorted({*stored, *wanted}):
            inner = f"{place}.{name}" if place else name
            if name not in stored or name not in wanted:
                return f"'{inner}' is in only one of them"
            if found := _difference(stored[name], wanted[name], inner):
                return found
        return ""
    return "" if stored == wanted else f"'{place}' was {stored!r} and is now {wanted!r}"


def _fill(path: Path, like: Any, stored: dict[str, np.ndarray], kinds: dict[str, str]) -> Any:
    """Put stored arrays in the place of the template's, each with the shape and type expected there."""
    expected = arrays_of(like)
    if set(expected) != set(stored):
        odd = sorted(set(expected) ^ set(stored))[0]
        raise UserError(
            f"The checkpoint {path} belongs to another configuration or version of mcetm: "
            f"array '{odd}' is in only one."
        )

    def value(name: str, leaf: Any) -> Any:
        if name in kinds:
            array: Any = jax.random.wrap_key_data(
                jnp.asarray(stored[name]), impl=kinds[name].removeprefix(_KEY)
            )
        else:
            array = jnp.asarray(stored[name]) if isinstance(leaf, jax.Array) else stored[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise UserError(
                f"The checkpoint {path} belongs to another configuration: array '{name}' is "
                f"{array.dtype}{list(array.shape)} and should be {leaf.dtype}{list(leaf.shape)}."
            )
        return array

    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    filled = [value(_path(place), leaf) if eqx.is_array(leaf) else leaf for place, leaf in leaves]
    return jax.tree_util.tree_unflatten(structure, filled)

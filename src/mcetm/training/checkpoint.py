"""Checkpoints: one safetensors file each, complete or absent, checked against damage and mix-ups.

The header (safetensors' metadata) holds, as JSON, the configuration, the step, the paths and kinds of all
arrays and a checksum over their bytes and over the header itself. No pickle anywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from mcetm.console import one_line
from mcetm.documents import Checksum, Count, FileError, Record, checked, parse, require_plain
from mcetm.errors import UserError
from mcetm.files import write_bytes
from mcetm.training.metrics import NOTED

_FORMAT = 2
"""Format 1 had its header outside the checksum; it is read."""
_NAME = re.compile(r"step-(\d{12})\.safetensors")
_KEY = "prng-key:"
"""Marks a typed PRNG key, of which the raw words are stored."""


class DamagedError(UserError):
    """A checkpoint that is not as it was written, whatever the job is."""


class _Extra(Record):
    noted: NOTED | None = None
    """Metrics of what was done for the next chunk already."""
    note: str | None = None


class _Header(Record):
    """What the metadata of a checkpoint says."""

    format: Annotated[int, Field(ge=1, le=2)]
    step: Count
    config: dict[str, Any]
    extra: _Extra
    keys: dict[str, str]
    checksum: Checksum


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


def _kind(leaf: Any) -> str:
    """What is noted of a random key beside its words; nothing for any other array."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return _KEY + str(jax.random.key_impl(leaf))
    return ""


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
        if kind := _kind(leaf):
            kinds[name] = kind
            leaf = jax.random.key_data(leaf)
        stored[name] = np.asarray(leaf, order="C")
    header = {
        "format": _FORMAT,
        "step": step,
        "config": config,
        "extra": dict(extra or {}),
        "keys": kinds,
    }
    header["checksum"] = _checksum(stored, header)
    path = checkpoint_path(folder, step)
    write_bytes(path, save(stored, metadata={"mcetm": json.dumps(header)}))
    remove_old(folder, step, keep=keep)
    return path


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return folder / f"step-{step:012d}.safetensors"


def remove_old(folder: Path, step: int, *, keep: int) -> None:
    """Remove all checkpoints but the one of this step and those just before it, `keep` in all.

    A later one is of steps that were taken back: it was damaged, or the job would have gone on from there.
    """
    found = list_checkpoints(folder)
    until = [path for path in found if path.name <= checkpoint_path(folder, step).name]
    for old in {*found} - {*until[-keep:]}:
        old.unlink(missing_ok=True)


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def load_newest(
    folder: Path, like: Any, *, config: Mapping[str, Any]
) -> tuple[Checkpoint | None, list[DamagedError]]:
    """The newest checkpoint that is whole, if there is one, and what is wrong with those after it."""
    damaged: list[DamagedError] = []
    for path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path, like, config=config), damaged
        except DamagedError as error:
            damaged.append(error)
    if damaged:  # to begin anew is for the user to say
        raise damaged[0]
    return None, []


def load_checkpoint(path: Path, like: Any, *, config: Mapping[str, Any]) -> Checkpoint:
    """Read a checkpoint into the structure of `like`, a freshly made state of the same configuration."""
    if not path.exists():
        raise UserError(f"There is no checkpoint {path}.")
    header, stored = _read(path)
    difference = _difference(header.config, json.loads(json.dumps(config)))
    if difference:
        raise UserError(f"The checkpoint {path} belongs to another configuration: {difference}.")
    extra = header.extra.model_dump(exclude_none=True)
    return Checkpoint(_fill(path, like, stored, header.keys), header.step, extra)


def _read(path: Path) -> tuple[_Header, dict[str, np.ndarray]]:
    """Header and arrays of a file, if they are as they were written."""
    from safetensors import SafetensorError, safe_open

    require_plain(path)
    try:
        with safe_open(path, framework="numpy") as file:
            said = parse(path, (file.metadata() or {})["mcetm"].encode())
            number = said.get("format") if isinstance(said, dict) else None
            if isinstance(number, int) and number not in (1, _FORMAT):
                raise UserError(f"{path} is of another version of mcetm (format {number}).")
            header: _Header = checked(path, said, _Header)
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except FileError as error:
        raise DamagedError(f"The checkpoint is damaged: {error}") from None
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DamagedError(f"The checkpoint {path} is damaged: {_words(error)}.") from None
    signed = {} if header.format == 1 else {name: said[name] for name in said if name != "checksum"}
    if header.checksum != _checksum(stored, signed):
        raise DamagedError(f"The checkpoint {path} is damaged: its checksum does not match.")
    match = _NAME.fullmatch(path.name)
    if match is not None and int(match[1]) != header.step:
        raise DamagedError(f"The checkpoint {path} is damaged: it is of step {header.step}.")
    return header, stored


def _words(error: Exception) -> str:
    """What a reader of safetensors says, without the damaged bytes."""
    if isinstance(error, KeyError):
        return "it has no header of ours"
    return one_line(" ".join(str(error).split()).rstrip("."), 120) or type(error).__name__


def _checksum(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> str:
    """Over all arrays and, where there is one, the header."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    if header:
        digest.update(json.dumps(header, sort_keys=True).encode())
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
            f"array '{odd}' is in only one. "
            "A network of your own is not written down: give it again (network=)."
        )

    def value(name: str, leaf: Any) -> Any:
        if kinds.get(name, "") != _kind(leaf):
            raise UserError(
                f"The checkpoint {path} belongs to another configuration: '{name}' is another kind of key."
            )
        if name in kinds:
            # The raw words must be as long as those of the key they stand for, or JAX refuses them.
            words = jax.random.key_data(leaf)
            array: Any = stored[name]
            if (array.shape, array.dtype) == (words.shape, words.dtype):
                array = jax.random.wrap_key_data(jnp.asarray(array), impl=kinds[name].removeprefix(_KEY))
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

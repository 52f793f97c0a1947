"""A policy, or any function of arrays, as StableHLO in `jax.export`'s file, with a JSON file of metadata."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mcetm.dynamics.plain_pairs import Layers, PlainPairScore
from mcetm.errors import UserError
from mcetm.export.content import PolicyContent
from mcetm.files import write_bytes, write_json

PLATFORMS = ("cpu", "cuda")
"""What the file runs on."""


def write_stablehlo(content: PolicyContent, path: Path) -> list[Path]:
    """`policy.stablehlo`: `obs` (batch, columns) ↦ {"action", "trust_score", "trust_limit"}, and the JSON."""
    low, span = jnp.asarray(content.low), jnp.asarray(content.high - content.low)

    def policy(obs: Array) -> dict[str, Array]:
        squashed = jnp.tanh(_mlp(content.layers, content.nonlinearity, obs))
        action = low + (squashed + 1.0) / 2.0 * span
        if content.pairs is None:
            return {"action": action}
        limit = jnp.asarray(content.pairs.limit, jnp.float32)
        score = _score(content.pairs, jnp.concatenate([obs, action], axis=-1))
        return {"action": action, "trust_score": score, "trust_limit": limit}

    return write_function(policy, {"obs": ("batch", content.obs_dim)}, path, about=content.about)


def write_function(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[str | int, ...]],
    path: Path,
    *,
    about: Mapping[str, Any],
    kinds: Mapping[str, Any] | None = None,
) -> list[Path]:
    """A function of arrays; a text in a shape is the name of a width that is open."""
    if importlib.util.find_spec("flatbuffers") is None:
        raise UserError(
            'StableHLO files need flatbuffers, which is not installed: pip install "mcetm[export]".'
        )
    from jax import export

    scope = export.SymbolicScope()
    shapes = {
        name: export.symbolic_shape(", ".join(map(str, shape)), scope=scope) for name, shape in inputs.items()
    }
    arguments = [
        jax.ShapeDtypeStruct(shape, (kinds or {}).get(name, jnp.float32)) for name, shape in shapes.items()
    ]
    # On a GPU a product would else be of fewer digits.
    with jax.default_matmul_precision("highest"), jax.numpy_dtype_promotion("standard"):
        exported = export.export(jax.jit(function), platforms=PLATFORMS)(*arguments)
    content = bytes(exported.serialize())
    beside = path.with_name(f"{path.name}.json")
    write_bytes(path, content)
    described = {
        **about,
        "inputs": {name: list(map(str, shape)) for name, shape in shapes.items()},
        "platforms": list(PLATFORMS),
        "file_checksum": hashlib.sha256(content).hexdigest(),
    }
    write_json(beside, described)
    return [path, beside]


def _mlp(layers: Layers, activation: str, x: Array) -> Array:
    activate = {"relu": jax.nn.relu, "silu": jax.nn.silu, "gelu": jax.nn.gelu, "tanh": jnp.tanh}[activation]
    for weight, bias in layers[:-1]:
        x = activate(x @ jnp.asarray(weight) + bias)
    weight, bias = layers[-1]
    return x @ jnp.asarray(weight) + bias


def _score(pairs: PlainPairScore, raw: Array) -> Array:
    """`PlainPairScore.__call__` in JAX."""
    pair = (raw - pairs.mean) / pairs.std
    code = _mlp(pairs.encoder, pairs.activation, pair)
    length = jnp.sqrt((code**2).sum(axis=-1, keepdims=True) + 1e-12)
    again = _mlp(pairs.decoder, pairs.activation, code * jnp.minimum(1.0, pairs.radius / length))
    off = jnp.sqrt(((again - pair) ** 2).mean(axis=-1) + 1e-12)
    found = jnp.zeros_like(off)
    if pairs.odds_activation is not None:
        seen = jnp.concatenate([pair, jnp.log1p(off / pairs.usual)[..., None]], axis=-1)
        odds = _mlp(pairs.odds, pairs.odds_activation, seen)[..., 0]
        found += pairs.bound * jnp.tanh(odds / pairs.bound)
    if pairs.far:
        middle = jnp.linalg.norm(pair @ jnp.asarray(pairs.whitening), axis=-1)
        for distance, most in ((off, pairs.reach), (middle, pairs.extent)):
            found += 4.0 * np.float32(pairs.bound) * jnp.maximum(0.0, distance / most - 1.0)
    return found

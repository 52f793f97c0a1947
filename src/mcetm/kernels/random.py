"""Random numbers that a kernel makes for itself: Threefry, and normals from its bits.

Counter-based: a number depends on a key and on who it is for, never on which tile or thread draws it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(
    key: tuple[Array, Array], counter: tuple[Array, Array], rounds: int = 13
) -> tuple[UInt32[Array, ...], UInt32[Array, ...]]:
    """Threefry-2x32 (Salmon et al., 2011): two words for every counter.

    JAX uses 20 rounds; 13 is what the authors recommend where speed matters, and passes their batteries too.
    """
    keys = (*key, key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for i in range(rounds):
        turn = _ROTATIONS[i // 4 % 2][i % 4]
        a = a + b
        b = (b << jnp.uint32(turn)) | (b >> jnp.uint32(32 - turn))
        b = b ^ a
        if i % 4 == 3:
            block = i // 4 + 1
            a = a + keys[block % 3]
            b = b + keys[(block + 1) % 3] + jnp.uint32(block)
    return a, b


# Giles (2010), "Approximating the erfinv function", single precision; as in XLA.
_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAILS = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def normal(bits: UInt32[Array, ...]) -> Float[Array, ...]:
    """Standard normals, one per word: √2 · erfinv of a uniform number in (−1, 1), as `jax.random.normal`."""
    # 23 bits, moved to the middle of their cell so that ±1 cannot occur.
    signed = (bits >> jnp.uint32(9)).astype(jnp.int32).astype(jnp.float32)
    u = signed * 2.0**-22 + (2.0**-23 - 1.0)
    w = -jnp.log((1.0 - u) * (1.0 + u))
    central = w < 5.0
    t = jnp.where(central, w - 2.5, w * jax.lax.rsqrt(w) - 3.0)
    value = jnp.where(central, _CENTRE[0], _TAILS[0])
    for centre, tail in zip(_CENTRE[1:], _TAILS[1:], strict=True):
        value = value * t + jnp.where(central, centre, tail)
    return value * u * 1.4142135623730951


def key_words(key: Array) -> UInt32[Array, " two"]:
    """Two words that stand for a JAX key."""
    return jax.random.bits(key, (2,), jnp.uint32)

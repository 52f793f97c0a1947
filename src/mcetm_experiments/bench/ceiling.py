"""What the machine can do at all: its rate at large matrix products."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mcetm_experiments.bench.clock import clock, compile_for
from mcetm_experiments.bench.sheet import Sheet, Timed

_PRODUCTS = 8
"""One after the other in one program, so that starting it does not count."""


CPU_SIZE = 1024


def matrix_ceiling(sheet: Sheet) -> float | None:
    """FLOP/s of the fastest product, measured; None where none could be."""
    on_cpu = jax.default_backend() == "cpu"
    size = CPU_SIZE if on_cpu else 8192
    best: float | None = None
    for dtype in (jnp.float32,) if on_cpu else (jnp.float32, jnp.bfloat16):
        flop = _PRODUCTS * 2.0 * size**3

        def measure(dtype: type = dtype, flop: float = flop) -> Timed:
            matrix = jnp.eye(size, dtype=dtype)

            def chain(matrix: jax.Array) -> jax.Array:
                return jax.lax.fori_loop(0, _PRODUCTS, lambda _, x: x @ matrix, matrix)

            made = compile_for(chain, matrix)
            seconds = clock(lambda: made.program(matrix))
            return Timed(seconds, made.seconds, {"TFLOP/s": flop / seconds.median / 1e12})

        name = jnp.dtype(dtype).name
        found = sheet.row(
            f"{_PRODUCTS} products of {size} × {size}", f"{name}, JAX's default precision", measure
        )
        if found is not None:
            best = max(best or 0.0, flop / found.seconds.median)
    return best

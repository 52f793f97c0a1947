"""A small regression job, run whole or killed and resumed by the tests of the loop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PRNGKeyArray

from mcetm.nn.mlp import MLP
from mcetm.training import EarlyStopping, LoopResult, Saving, over_members, train_loop
from mcetm.training.optimise import apply_gradient, init_optimiser

OPTIMISER = optax.adam(1e-2)


def data() -> Array:
    return jax.random.normal(jax.random.key(0), (256, 2))


def make(key: PRNGKeyArray) -> Any:
    model = MLP(2, 1, width=8, depth=1, key=key)
    return model, init_optimiser(OPTIMISER, model)


def members(count: int) -> Any:
    return eqx.filter_vmap(make)(jax.random.split(jax.random.key(1), count))


def loss(model: MLP, x: Array) -> Array:
    return jnp.mean((jax.vmap(model)(x)[:, 0] - x[:, 0] * x[:, 1]) ** 2)


def step(state: Any, data: Array, *, key: PRNGKeyArray) -> tuple[Any, dict[str, Array]]:
    model, opt_state = state
    rows = data[jax.random.randint(key, (16,), 0, len(data))]
    value, gradient = eqx.filter_value_and_grad(loss)(model, rows)
    return apply_gradient(OPTIMISER, model, gradient, opt_state), {"loss": value}


def validate(state: Any) -> dict[str, Array]:
    score = eqx.filter_vmap(loss, in_axes=(eqx.if_array(0), None))(state[0], data())
    return {"score": score}


def run(folder: Path | None, *, steps: int = 400, chunk: int = 10, stop_early: bool = True) -> LoopResult:
    saving = None if folder is None else Saving(folder, {"steps": steps, "width": 8}, every_seconds=0.0)
    return train_loop(
        over_members(step),
        members(3),
        data(),
        steps=steps,
        key=jax.random.key(2),
        chunk=chunk,
        validate=validate,
        early_stopping=EarlyStopping(patience=10_000) if stop_early else None,
        saving=saving,
    )


if __name__ == "__main__":
    run(Path(sys.argv[1]), steps=int(sys.argv[2]))
    print("finished")

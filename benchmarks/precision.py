"""What coarser matrix products in the sampler do to predictions, energies and returns, on the main job.

    python benchmarks/precision.py [--seeds 5] [--run RUN] [--record]

Models are trained in float32 as in `mcetm train --preset quick` (or taken from a finished run). Then the
operands of every product are rounded as tensor cores round them, forward and back, wherever a next state is
sampled: for predictions and energies of held-out rows, and in all rollouts of policies that learn from
scratch. Rounding is done in software, so any machine can measure all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mcetm.agents import ModelBased, make_stage
from mcetm.agents.fit import action_bounds, mean_returns
from mcetm.dynamics import World
from mcetm.evaluation import spearman
from mcetm.nn.mlp import Linear
from mcetm.pipeline import Finished, make_config, read_finished, with_steps
from mcetm.pipeline.train import run_training, start_run
from mcetm.training import Batch
from record import record

OPERANDS = {"float32": None, "tf32": (8, 10), "float16": (5, 10), "bfloat16": (8, 7)}
"""Bits of exponent and mantissa."""
ROWS = 2000


def main() -> None:
    """Train the models if need be, and measure each kind of operand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--run", type=Path, default=None)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        path, config = given.run, make_config("quick", seeds=1)
        algorithm = config.algorithm
        if path is None:
            # One update: of this run only the models are wanted.
            often = replace(config.evaluation, every=1)
            config = with_steps(replace(config, baselines=(), evaluation=often), 1)
            path = Path(folder) / "run"
            start_run(config, path)
            run_training(path, config)
        finished = read_finished(path)
        algorithm = algorithm if given.run is None else finished.config.algorithm
        found = _measure(finished, cast(ModelBased, algorithm), given.seeds)
    record("precision", found)


def _measure(finished: Finished, algorithm: ModelBased, seeds: int) -> dict[str, Any]:
    assert finished.task is not None  # noqa: S101 (returns need a simulator)
    world, train = finished.models.world, finished.train
    holdout = Batch.of(finished.holdout).draw(ROWS, key=jax.random.key(0))
    found: dict[str, Any] = {}
    exact: np.ndarray | None = None
    for name, bits in OPERANDS.items():
        with rounded(bits):
            error, energies = _predict(world, holdout, algorithm.samples)
        exact = energies if exact is None else exact
        stage = make_stage(algorithm, train, world, action_bounds(train))
        assert stage.between is not None  # noqa: S101 (MC-ETM imagines)
        stage = replace(stage, between=_with(bits, stage.between))
        agents = stage.train(eqx.filter_jit(stage.agents)(jnp.arange(seeds))).state
        returns = mean_returns(
            agents.learner.actor, finished.task, finished.config.evaluation.episodes, seeds
        )
        found[name] = {
            "prediction_error": round(error, 5),
            "rank_correlation_with_float32": round(spearman(energies, exact), 5),
            "return": round(float(np.mean(returns)), 1),
            "spread_over_seeds": round(float(np.std(returns, ddof=1)), 1),
            "returns": [round(value, 1) for value in returns],
        }
        print(name, found[name], flush=True)
    return {"dataset": finished.config.dataset, "seeds": seeds, "held_out_rows": ROWS, "operands": found}


def _predict(world: World, holdout: Batch, samples: int) -> tuple[float, np.ndarray]:
    """Mean absolute error of the samples of least energy, and these energies."""

    @jax.jit
    def one(batch: Batch, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        def row(obs: jax.Array, action: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            drawn = world.model.draw(obs, action, samples, key=key)
            energies = cast(jax.Array, drawn.energy).ravel()
            return drawn.next_obs.reshape(-1, obs.shape[0])[energies.argmin()], energies.min()

        keys = jax.random.split(key, batch.obs.shape[0])
        return jax.vmap(row)(batch.obs, batch.action, keys)

    best, energies = one(holdout, jax.random.key(1))
    return float(jnp.abs(best - holdout.next_obs).mean()), np.asarray(energies)


def _with(bits: tuple[int, int] | None, between: Callable[..., Any]) -> Callable[..., Any]:
    """The same, traced with rounded products."""

    def wrapped(state: Any, data: Any) -> Any:
        with rounded(bits):
            return between(state, data)

    return wrapped


@contextmanager
def rounded(bits: tuple[int, int] | None) -> Iterator[None]:
    """Products of all networks that are traced inside have their operands rounded."""
    if bits is None:
        yield
        return
    short = lambda x: jax.lax.reduce_precision(x, *bits)  # noqa: E731

    @jax.custom_vjp
    def product(weight: jax.Array, x: jax.Array) -> jax.Array:
        return short(weight) @ short(x)

    def forward(weight: jax.Array, x: jax.Array) -> Any:
        return product(weight, x), (weight, x)

    def backward(kept: Any, slope: jax.Array) -> Any:
        weight, x = kept
        return jnp.outer(short(slope), short(x)), short(weight).T @ short(slope)

    product.defvjp(forward, backward)
    original = Linear.__call__
    Linear.__call__ = lambda self, x: product(self.weight, x) + self.bias
    try:
        yield
    finally:
        Linear.__call__ = original


if __name__ == "__main__":
    main()

"""One-step errors on held-out rows of every level of a task, and predictions after chains of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm import UserError
from mcetm.data import Statistics, Transitions
from mcetm.dynamics import EnergyTransitionModel, InferenceSettings, Langevin
from mcetm_experiments.shared.baselines import Draw
from mcetm_experiments.shared.batched import in_batches
from mcetm_experiments.shared.locomotion import unseen

Start = Literal["regressor", "noise"]
Stages = Literal["two-stage", "ambient"]
STARTS: tuple[Start, ...] = ("regressor", "noise")
STAGES: tuple[Stages, ...] = ("two-stage", "ambient")
_BATCH = 1000


class LevelRows(eqx.Module):
    """Held-out rows of every level of a task."""

    rows: dict[str, tuple[Array, Array, Array]]
    """obs, action, next_obs by level."""
    spread: dict[str, Float[np.ndarray, " obs"]]
    """Standard deviation of each dimension's change."""

    @classmethod
    def of(cls, logs: dict[str, Transitions], train: Transitions, count: int, *, seed: int) -> LevelRows:
        """Rows at random that are not among those trained on."""
        rows, spread, rng = {}, {}, np.random.default_rng(seed)
        for level, log in logs.items():
            free = unseen(log, train)
            if not len(free):
                raise UserError(f"Every row of the test {log.metadata.source} is among those trained on.")
            picked = np.sort(rng.permutation(free)[:count])
            rows[level] = tuple(jnp.asarray(part[picked]) for part in (log.obs, log.action, log.next_obs))
            spread[level] = Statistics.of(log).change.std
        return cls(rows, spread)

    def errors(self, draw: Draw, *, key: PRNGKeyArray) -> dict[str, dict[str, Any]]:
        """What a prediction errs by on every level."""
        found = {}
        for level, (obs, action, ground_truth) in self.rows.items():
            keys = jax.random.split(key, len(obs))
            predicted = in_batches(lambda *part: _predict(draw, *part), (obs, action, keys), _BATCH)
            found[level] = errors(predicted, np.asarray(ground_truth), self.spread[level])
        return found


@eqx.filter_jit
def _predict(draw: Draw, obs: Array, action: Array, keys: Array) -> Array:
    return jax.vmap(draw)(obs, action, keys)


def errors(
    predicted: Float[np.ndarray, "rows obs"],
    ground_truth: Float[np.ndarray, "rows obs"],
    spread: Float[np.ndarray, " obs"],
) -> dict[str, Any]:
    """Absolute errors: their mean in raw units and in units of the spread of changes, and a typical row's."""
    error = np.abs(predicted.astype(np.float64) - ground_truth)
    return {
        "mean": float(error.mean()),
        "median": float(np.median(error.mean(axis=1))),
        "normalised": float((error / spread).mean()),
        "dimensions": (error / spread).mean(axis=0).tolist(),
        "rows": len(error),
    }


def with_steps(
    model: EnergyTransitionModel, start: Start, stages: Stages, steps: int, chain: Langevin
) -> EnergyTransitionModel:
    """The model with chains of so many steps in all; of two stages the first has half of them."""
    # No steps leave the start as it is: to encode and decode it would be a change already.
    latent = steps // 2 if stages == "two-stage" else 0
    inference = InferenceSettings(
        start=start,
        latent=replace(chain, steps=latent) if latent else None,
        ambient=replace(chain, steps=steps - latent),
    )
    return replace(model, config=inference)

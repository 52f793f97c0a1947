"""The Gaussian ensemble's error on locomotion data.

Collects hopper-medium and halfcheetah-medium (a million transitions each; D4RL's medium policies must be at
hand) and trains the ensemble of full size on them. Times of models are `mcetm bench`'s.
"""

from __future__ import annotations

import time

import equinox as eqx
import jax
import jax.numpy as jnp

from mcetm.dynamics import fit_gaussian
from mcetm.envs import collect_recipe
from mcetm.tasks import RECIPES
from mcetm.training.batches import Batch
from mcetm_experiments.shared.models import FULL_GAUSSIAN
from record import record


def main() -> None:
    """Train on both datasets."""
    names = ("hopper-medium", "halfcheetah-medium")
    device = jax.devices()[0].device_kind
    record("accuracy", {"device": device, "gaussian": {name: _accuracy(name) for name in names}})


def _accuracy(name: str) -> dict[str, float]:
    """Mean absolute error of the next state in raw units on held-out episodes."""
    train, holdout = collect_recipe(RECIPES[name]).split(0.04, seed=0)
    began = time.perf_counter()
    ensemble, _ = fit_gaussian(train, holdout, FULL_GAUSSIAN, key=jax.random.key(0))
    seconds = time.perf_counter() - began
    held = Batch.of(holdout)

    @eqx.filter_jit
    def means(batch: Batch) -> jax.Array:
        return jax.vmap(lambda o, a: ensemble.of_members(o, a)[0])(batch.obs, batch.action)

    predicted = jnp.concatenate(
        [means(held.take(jnp.arange(i, min(i + 4096, len(held))))) for i in range(0, len(held), 4096)]
    )
    single = jnp.abs(predicted - held.next_obs[:, None]).mean(axis=(0, 2))
    together = jnp.abs(predicted.mean(axis=1) - held.next_obs).mean()
    return {
        "held_out_rows": len(held),
        "ensemble_error": round(float(together), 5),
        "best_member_error": round(float(single.min()), 5),
        "worst_elite_error": round(float(single.max()), 5),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()

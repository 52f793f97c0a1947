"""Transition models: the Gaussian ensemble's error on locomotion data, and what energies cost.

`--accuracy` collects hopper-medium and halfcheetah-medium (a million transitions each; D4RL's medium policies
must be at hand) and trains the default ensemble. Times need no data: they use random rows of HalfCheetah's
size, at the paper's settings unless `--small`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from eager import Eager, have_torch
from mcetm import Statistics, Transitions
from mcetm.dynamics.energy import PlainEnergy
from mcetm.dynamics.etm import PAPER_EMPO, EnergyConfig, fit_energy
from mcetm.dynamics.gaussian import Gaussian, GaussianConfig, GaussianEnsemble, fit_gaussian
from mcetm.dynamics.inference import EnergyEnsemble, InferenceConfig
from mcetm.dynamics.manifold import Autoencoder, AutoencoderConfig
from mcetm.dynamics.space import Space
from mcetm.envs import collect_recipe
from mcetm.nn.scaling import Scaling
from mcetm.tasks import RECIPES
from mcetm.training.batches import Batch
from record import record

SMALL = "--small" in sys.argv


def main() -> None:
    """Time training and sampling; with `--accuracy` also train on real data."""
    result: dict[str, Any] = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    result["energy_training"] = _training_times()
    result["sampling"] = _sampling_time()
    if have_torch():
        result["eager_pytorch"] = _eager(result)
    if "--accuracy" in sys.argv:
        result["gaussian"] = {name: _accuracy(name) for name in ("hopper-medium", "halfcheetah-medium")}
    record("models", result)


def _made(rows: int = 50_000) -> Transitions:
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((rows, 17), dtype=np.float32)
    action = rng.uniform(-1, 1, (rows, 6)).astype(np.float32)
    following = obs + 0.1 * rng.standard_normal((rows, 17), dtype=np.float32)
    ends = np.arange(rows) % 1000 == 999
    return Transitions.from_arrays(obs, action, np.zeros(rows), following, np.zeros(rows, bool), ends)


def _training_times() -> dict[str, float]:
    """Milliseconds of one training step, compilation apart."""
    data = _made()
    autoencoder = Autoencoder(
        AutoencoderConfig(latent_dim=10), Scaling.of(Statistics.of(data).obs), key=jax.random.key(0)
    )
    config = replace(PAPER_EMPO, batch_size=32, count=4, width=32) if SMALL else PAPER_EMPO
    chunk = 5 if SMALL else 50
    times = {}
    for members in (1, 5):
        chosen: EnergyConfig = replace(config, members=members, steps=4 * chunk)
        _, history = fit_energy(data, chosen, autoencoder=autoencoder, key=jax.random.key(1), chunk=chunk)
        steady = min(line["seconds"] for line in history[1:])
        times[f"{members}_members_ms"] = round(1e3 * steady / chunk, 2)
        times[f"{members}_members_compile_s"] = round(history[0]["seconds"] - steady, 1)
    times["ratio"] = round(times["5_members_ms"] / times["1_members_ms"], 2)
    return times


def _sampling_time() -> dict[str, float]:
    """Milliseconds for 5 members × 256 states × 10 samples × 60 Langevin steps."""
    data = _made()
    statistics, space = Statistics.of(data), Space.of(data)
    config = PAPER_EMPO
    states = 8 if SMALL else 256
    keys = jax.random.split(jax.random.key(0), 5)
    members = eqx.filter_vmap(
        lambda k: PlainEnergy(statistics, space, width=config.width, depth=config.depth, key=k)
    )(keys)
    gaussians = eqx.filter_vmap(lambda k: Gaussian(GaussianConfig(), statistics, key=k))(keys)
    model = EnergyEnsemble(
        members,
        space,
        GaussianEnsemble(gaussians, jnp.arange(5)),
        Autoencoder(
            AutoencoderConfig(latent_dim=10), Scaling.of(Statistics.of(data).obs), key=jax.random.key(1)
        ),
        InferenceConfig(),
    )
    batch = Batch.of(data).take(jnp.arange(states))

    @eqx.filter_jit
    def draw(model: EnergyEnsemble, batch: Batch, key: jax.Array) -> jax.Array:
        keys = jax.random.split(key, states)
        return jax.vmap(lambda o, a, k: model.samples(o, a, 10, key=k).energy)(batch.obs, batch.action, keys)

    began = time.perf_counter()
    jax.block_until_ready(draw(model, batch, jax.random.key(2)))
    compiled = time.perf_counter() - began
    times = []
    for i in range(5 if SMALL else 20):
        began = time.perf_counter()
        jax.block_until_ready(draw(model, batch, jax.random.key(i)))
        times.append(time.perf_counter() - began)
    return {"ms": round(1e3 * float(np.median(times)), 2), "compile_s": round(compiled, 1)}


def _eager(ours: dict[str, Any]) -> dict[str, float]:
    """The same work in eager PyTorch, members one after the other, and how much longer it takes."""
    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    rows, count, states, width = (32, 4, 8, 32) if SMALL else (1024, 20, 256, 200)
    times = {}
    for members in (1, 5):
        training = Eager(members=members, device=device, width=width)
        took = training.milliseconds(lambda e=training: e.train_step(rows, count), 3)
        times[f"{members}_members_ms"] = round(took, 1)
        times[f"{members}_members_ratio"] = round(took / ours["energy_training"][f"{members}_members_ms"], 1)
    sampling = Eager(members=5, device=device)
    times["sampling_ms"] = round(sampling.milliseconds(lambda: sampling.sample(states, 10), 5), 1)
    times["sampling_ratio"] = round(times["sampling_ms"] / ours["sampling"]["ms"], 1)
    return times


def _accuracy(name: str) -> dict[str, float]:
    """Mean absolute error of the next state in raw units on held-out episodes."""
    train, holdout = collect_recipe(RECIPES[name]).split(0.04, seed=0)
    began = time.perf_counter()
    ensemble, _ = fit_gaussian(train, holdout, key=jax.random.key(0))
    seconds = time.perf_counter() - began
    held = Batch.of(holdout)

    @eqx.filter_jit
    def means(batch: Batch) -> jax.Array:
        return jax.vmap(lambda o, a: ensemble.predict(o, a)[0])(batch.obs, batch.action)

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

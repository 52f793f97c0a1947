"""Sampling time of every transition model side by side.

The paper (appendix): energies take 5 to 6 times as long as the MLP, and manifold projection-diffusion adds
nothing to inference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp

from mcetm.data import Statistics, Transitions
from mcetm.dynamics import (
    STANDARD,
    Denoiser,
    DiffusionModel,
    InferenceSettings,
    Langevin,
    TransitionModel,
)
from mcetm.pipeline import make_config
from mcetm_experiments.bench.clock import clock, compile_for
from mcetm_experiments.bench.sampling import COUNT, draw_samples
from mcetm_experiments.bench.sheet import Sheet, Timed
from mcetm_experiments.bench.subjects import energies, gaussians, random_log
from mcetm_experiments.shared.models import FULL_DIFFUSION, FULL_GAUSSIAN, ModelsConfig

_MEMBERS = 5


def run_models(sheet: Sheet) -> None:
    """Five members, ten samples of each, for as many states."""
    states = 256 if sheet.full else 32
    log = random_log()
    obs, action = jnp.asarray(log.obs)[:states], jnp.asarray(log.action)[:states]
    work = f"{_MEMBERS} × {states} × {COUNT} next states"
    first: float | None = None
    for name, make in MODELS.items():

        def measure(
            make: Callable[[Transitions], TransitionModel] = make, first: float | None = first
        ) -> Timed:
            model, key = make(log), jax.random.key(0)
            made = compile_for(
                lambda model, o, a, k: draw_samples(model, o, a, key=k), model, obs, action, key
            )
            seconds = clock(lambda: made.program(model, obs, action, key))
            ratio = {} if first is None else {"times the Gaussian": seconds.median / first}
            rate = _MEMBERS * states * COUNT / seconds.median
            return Timed(seconds, made.seconds, {"next states/s": rate, **ratio})

        found = sheet.row(work, name, measure)
        first = found.seconds.median if first is None and found is not None else first


def _diffusion(log: Transitions) -> DiffusionModel:
    config, statistics = replace(FULL_DIFFUSION, members=_MEMBERS), Statistics.of(log)
    keys = jax.random.split(jax.random.key(5), config.members)
    return DiffusionModel(eqx.filter_vmap(lambda key: Denoiser(config, statistics, key=key))(keys))


def _standard(log: Transitions) -> TransitionModel:
    """As many steps as MC-ETM's two stages together, all of them in state space."""
    models = ModelsConfig.of(make_config("paper-empo", dataset="halfcheetah-medium"))
    inference = InferenceSettings(latent=None, ambient=Langevin(steps=60, noise=0.1))
    return energies(replace(models, energy=STANDARD, inference=inference), log)


def _preset(name: str) -> Callable[[Transitions], TransitionModel]:
    return lambda log: energies(ModelsConfig.of(make_config(name, dataset="halfcheetah-medium")), log)


MODELS: dict[str, Callable[[Transitions], TransitionModel]] = {
    "Gaussian ensemble": lambda log: gaussians(FULL_GAUSSIAN, log),
    "MC-ETM, 30 latent + 30 ambient steps": _preset("paper-empo"),
    "standard ETM, 60 ambient steps": _standard,
    "MC-ETM in preset fast, 10 steps from the anchor": _preset("fast"),
    "diffusion, 18 steps": _diffusion,
}
"""The Gaussian is first: the others are measured against it."""

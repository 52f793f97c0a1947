"""The transition models that every study compares, trained on the same log and asked in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics import (
    ANCHORED,
    PAPER_EMPO,
    STANDARD,
    AutoencoderConfig,
    DiffusionConfig,
    EnergyConfig,
    GaussianConfig,
    InferenceConfig,
    fit_autoencoder,
    fit_diffusion,
    fit_energy,
    fit_gaussian,
)

Draw = Callable[[Float[Array, " obs"], Float[Array, " action"], PRNGKeyArray], Float[Array, " obs"]]


@dataclass(frozen=True)
class RivalsConfig:
    """The settings of every model of a comparison."""

    gaussian: GaussianConfig = field(default_factory=GaussianConfig)
    autoencoder: AutoencoderConfig = field(default_factory=AutoencoderConfig)
    standard: EnergyConfig = STANDARD
    plain: EnergyConfig = PAPER_EMPO
    anchored: EnergyConfig = ANCHORED
    diffusion: DiffusionConfig = field(default_factory=DiffusionConfig)


@dataclass(frozen=True)
class Rival:
    """A trained model: its point prediction, its samples, and what it cost."""

    name: str
    predict: Draw
    sample: Draw
    model: Any
    seconds: float
    """Training time, with that of the parts it needs (regressor, autoencoder)."""


def train_rivals(
    train: Transitions, holdout: Transitions, config: RivalsConfig, *, key: PRNGKeyArray
) -> Iterator[Rival]:
    """Train one model after the other."""
    keys = jax.random.split(key, 6)

    def clocked(make: Callable[[], tuple[Any, Any]]) -> tuple[Any, float]:
        began = time.perf_counter()
        model = jax.block_until_ready(make()[0])
        return model, time.perf_counter() - began

    regressor, cost = clocked(lambda: fit_gaussian(train, holdout, config.gaussian, key=keys[0]))
    yield Rival(
        "Gaussian ensemble",
        lambda o, a, k: regressor.predict(o, a)[0].mean(axis=0),
        lambda o, a, k: regressor.sample(o, a, key=k),
        regressor,
        cost,
    )
    autoencoder, manifold_cost = clocked(lambda: fit_autoencoder(train, config.autoencoder, key=keys[1]))

    def energies(name: str, settings: EnergyConfig, key: PRNGKeyArray) -> Rival:
        on_manifold = settings.negatives == "manifold"
        inference = None if on_manifold or settings.kind == "anchored" else InferenceConfig(latent=None)
        model, own = clocked(
            lambda: fit_energy(
                train,
                settings,
                autoencoder=autoencoder if on_manifold else None,
                regressor=regressor,
                inference=inference,
                key=key,
            )
        )
        return Rival(
            name,
            lambda o, a, k: model.predict(o, a, key=k),
            lambda o, a, k: model.sample(o, a, key=k),
            model,
            cost + manifold_cost * on_manifold + own,
        )

    yield energies("standard ETM", config.standard, keys[2])
    yield energies("MC-ETM, plain", config.plain, keys[3])
    yield energies("MC-ETM, anchored", config.anchored, keys[4])
    diffusion, own = clocked(lambda: fit_diffusion(train, config.diffusion, key=keys[5]))
    yield Rival(
        "diffusion",
        lambda o, a, k: diffusion.predict(o, a),
        lambda o, a, k: diffusion.sample(o, a, key=k),
        diffusion,
        own,
    )


def scaled_down(config: RivalsConfig, **changes: Any) -> RivalsConfig:
    """The same comparison with these settings changed in every energy model."""
    energies = {name: replace(getattr(config, name), **changes) for name in ("standard", "plain", "anchored")}
    return replace(config, **energies)

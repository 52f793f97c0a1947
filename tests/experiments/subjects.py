"""Models for tests of what is asked of them: never trained, small ones, and some that must not be trained."""

import equinox as eqx
import jax
import jax.numpy as jnp

from mcetm import Statistics, Transitions
from mcetm.dynamics import (
    REFINE,
    AnchoredEnergy,
    AutoencoderSettings,
    DiffusionEnsemble,
    EnergyTransitionModel,
    Gaussian,
    GaussianEnsemble,
    GaussianModel,
    Langevin,
    Space,
    Threshold,
)
from mcetm_experiments.shared.baselines import BaselinesConfig, scaled_down

SHORT = Langevin(steps=2)


def untrained(log: Transitions, members: int = 2) -> tuple[GaussianModel, EnergyTransitionModel, Threshold]:
    """A regressor, energies anchored in it, and thresholds 1, 2, …"""
    config, statistics = (
        GaussianEnsemble(members=members, elites=members, width=8, depth=1),
        Statistics.of(log),
    )
    keys = jax.random.split(jax.random.key(0), members)
    gaussians = eqx.filter_vmap(lambda k: Gaussian(config, statistics, key=k))(keys)
    anchored = eqx.filter_vmap(lambda anchor, k: AnchoredEnergy(anchor, width=8, depth=1, key=k))
    energy = EnergyTransitionModel(anchored(gaussians, keys), Space.of(log, "change"), config=REFINE)
    threshold = Threshold(jnp.arange(1.0, members + 1.0))
    return GaussianModel(gaussians, jnp.arange(members)), energy, threshold


def tiny_baselines() -> BaselinesConfig:
    """Every model of a comparison at a size that is trained in no time."""
    baselines = BaselinesConfig(
        gaussian=GaussianEnsemble(members=2, elites=2, width=8, depth=1, steps=20, batch_size=16),
        mlp=GaussianEnsemble(members=1, elites=1, width=8, depth=1, steps=20, batch_size=16, squared=True),
        autoencoder=AutoencoderSettings(latent_dim=2, width=8, depth=1, steps=20, batch_size=16),
        diffusion=DiffusionEnsemble(members=1, width=8, depth=1, steps=20, batch_size=16, sampler_steps=3),
    )
    return scaled_down(
        baselines, members=2, batch_size=8, count=2, width=8, depth=1, steps=10, latent=SHORT, ambient=SHORT
    )


class NoBaselines:
    """In the place of `Baselines`: a finished study must not ask for any model again."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was trained again")

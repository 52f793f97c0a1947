"""Models that were never trained, for tests of what is asked of them, and some that must not be."""

import equinox as eqx
import jax
import jax.numpy as jnp

from mcetm import Statistics, Transitions
from mcetm.dynamics import (
    REFINE,
    AnchoredEnergy,
    EnergyEnsemble,
    Gaussian,
    GaussianConfig,
    GaussianEnsemble,
    Space,
    Threshold,
)


def untrained(log: Transitions, members: int = 2) -> tuple[GaussianEnsemble, EnergyEnsemble, Threshold]:
    """A regressor, energies anchored in it, and thresholds 1, 2, …"""
    config, statistics = GaussianConfig(width=8, depth=1), Statistics.of(log)
    keys = jax.random.split(jax.random.key(0), members)
    gaussians = eqx.filter_vmap(lambda k: Gaussian(config, statistics, key=k))(keys)
    anchored = eqx.filter_vmap(lambda anchor, k: AnchoredEnergy(anchor, width=8, depth=1, key=k))
    energy = EnergyEnsemble(anchored(gaussians, keys), Space.of(log, "change"), config=REFINE)
    threshold = Threshold(jnp.arange(1.0, members + 1.0))
    return GaussianEnsemble(gaussians, jnp.arange(members)), energy, threshold


class NoRivals:
    """In the place of `Rivals`: a finished study must not ask for any model again."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was trained again")

"""Plain JAX and the fused sampler side by side: which of the two runs is settled when a program is traced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mcetm.dynamics import fused
from mcetm_experiments.bench.subjects import OBS
from mcetm_experiments.shared.models import ModelsConfig

PLAIN, FUSED = "plain JAX", "fused sampler"


@contextmanager
def using(backend: str) -> Iterator[None]:
    """Ask for the one or the other, whatever was asked for before."""
    before = os.environ.get("MCETM_FUSED")
    os.environ["MCETM_FUSED"] = "on" if backend == FUSED else "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["MCETM_FUSED"]
        else:
            os.environ["MCETM_FUSED"] = before


def backends(config: ModelsConfig) -> list[str]:
    """What can run the chains of these energies on this machine."""
    energy, below = config.energy, config.autoencoder
    widths = [energy.width] * energy.depth
    with using(FUSED):
        served = fused.kernel(widths, OBS) is not None
        if energy.negatives == "manifold":
            hidden = [below.width] * below.depth
            encoder = [*hidden, below.latent_dim] if energy.recovery else []
            stages = [fused.kernel(widths, below.latent_dim, hidden), fused.kernel(widths, OBS, (), encoder)]
            served = served and None not in stages
    return [PLAIN, FUSED] if served else [PLAIN]

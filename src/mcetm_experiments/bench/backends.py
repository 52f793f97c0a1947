"""The backends of the sampler, side by side: which of them can run the chains of some energies here."""

from __future__ import annotations

from mcetm.dynamics import Backend, fused
from mcetm_experiments.bench.subjects import OBS
from mcetm_experiments.shared.models import ModelsConfig

LABELS: dict[Backend, str] = {"plain": "plain JAX", "fused": "fused sampler"}
"""How tables call them."""


def backends(config: ModelsConfig) -> list[Backend]:
    """What can run the chains of these energies on this machine."""
    energy, below = config.energy, config.autoencoder
    widths = [energy.width] * energy.depth
    kernels = [fused.kernel(widths, OBS)]
    if energy.negatives == "manifold":
        hidden = [below.width] * below.depth
        encoder = [*hidden, below.latent_dim] if energy.recovery else []
        kernels += [fused.kernel(widths, below.latent_dim, hidden), fused.kernel(widths, OBS, (), encoder)]
    return ["plain"] if None in kernels else ["plain", "fused"]

"""The parts of an energy-based model as studies vary them, and full sizes of networks."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from mcetm.dynamics import (
    AutoencoderSettings,
    CalibrationSettings,
    DiffusionEnsemble,
    EnergySettings,
    GaussianEnsemble,
    InferenceSettings,
    SupportSettings,
)
from mcetm.pipeline import TrainConfig

# The library's defaults are for laptops. Studies say all sizes, so that what they measured stays what it is.
FULL_GAUSSIAN = GaussianEnsemble(
    members=7, elites=5, width=200, depth=4, batch_size=1024, learning_rate=1e-3, steps=100_000
)
"""The Gaussian ensemble at full size."""
FULL_MLP = replace(FULL_GAUSSIAN, squared=True)
"""The plain MLP at full size: squared errors alone."""
FULL_DIFFUSION = DiffusionEnsemble(
    members=1, width=256, depth=4, batch_size=1024, learning_rate=1e-3, steps=100_000
)
"""Conditional diffusion at full size."""
FULL_AUTOENCODER = AutoencoderSettings(
    latent_dim=10, width=64, depth=3, batch_size=1024, learning_rate=1e-3, steps=20_000
)
"""The manifold of next states at full size."""


@dataclass(frozen=True)
class ModelsConfig:
    """An energy-based model, each part by itself."""

    energy: EnergySettings
    """The energies and their training."""
    gaussian: GaussianEnsemble = FULL_GAUSSIAN
    """The Gaussian ensemble that chains begin at, and that anchored energies correct."""
    autoencoder: AutoencoderSettings = FULL_AUTOENCODER
    """The manifold of next states."""
    inference: InferenceSettings | None = None
    """How next states are drawn; None takes what suits the kind of energy."""
    support: SupportSettings | None = None
    """None: energies know next states only, and not whether (s, a) is known."""
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    """How thresholds are found."""

    @classmethod
    def of(cls, config: TrainConfig) -> ModelsConfig:
        """The parts of a run's model, which must be an energy-based one of the library."""
        model = config.model
        return cls(
            energy=EnergySettings(
                **{part.name: getattr(model, part.name) for part in fields(EnergySettings)}
            ),
            gaussian=model.regressor,
            autoencoder=model.autoencoder,
            inference=model.inference,
            support=model.support,
            calibration=config.world.calibration,
        )

"""How a next state is predicted: one file per transition model, the sampler, the manifold, calibration."""

from mcetm.dynamics.calibrate import CalibrationConfig, Threshold, calibrate
from mcetm.dynamics.energy import AnchoredEnergy, Energy, PlainEnergy
from mcetm.dynamics.etm import (
    ANCHORED,
    PAPER,
    PAPER_EMPO,
    STANDARD,
    EnergyConfig,
    SamplerConfig,
    fit_energy,
    state_box,
)
from mcetm.dynamics.gaussian import KIT, Gaussian, GaussianConfig, GaussianEnsemble, fit_gaussian
from mcetm.dynamics.inference import EnergyEnsemble, InferenceConfig, Samples
from mcetm.dynamics.langevin import Box, Langevin, Schedule
from mcetm.dynamics.manifold import Autoencoder, AutoencoderConfig, fit_autoencoder, reconstruction
from mcetm.dynamics.reward import HeadConfig, LearnedTermination, fit_reward, fit_termination

__all__ = [
    "ANCHORED",
    "KIT",
    "PAPER",
    "PAPER_EMPO",
    "STANDARD",
    "AnchoredEnergy",
    "Autoencoder",
    "AutoencoderConfig",
    "Box",
    "CalibrationConfig",
    "Energy",
    "EnergyConfig",
    "EnergyEnsemble",
    "Gaussian",
    "GaussianConfig",
    "GaussianEnsemble",
    "HeadConfig",
    "InferenceConfig",
    "Langevin",
    "LearnedTermination",
    "PlainEnergy",
    "SamplerConfig",
    "Samples",
    "Schedule",
    "Threshold",
    "calibrate",
    "fit_autoencoder",
    "fit_energy",
    "fit_gaussian",
    "fit_reward",
    "fit_termination",
    "reconstruction",
    "state_box",
]

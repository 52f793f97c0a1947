"""How a next state is predicted: one file per transition model, the sampler, the manifold, calibration."""

from mcetm.dynamics.calibrate import CalibrationConfig, Judge, Threshold, calibrate
from mcetm.dynamics.diffusion import Diffusion, DiffusionConfig, DiffusionEnsemble, fit_diffusion
from mcetm.dynamics.disagreement import Disagreement
from mcetm.dynamics.energy import AnchoredEnergy, Energy, PlainEnergy
from mcetm.dynamics.etm import ANCHORED, PAPER, PAPER_EMPO, STANDARD, EnergyConfig, fit_energy
from mcetm.dynamics.gaussian import KIT, Gaussian, GaussianConfig, GaussianEnsemble, fit_gaussian
from mcetm.dynamics.inference import REFINE, EnergyEnsemble, InferenceConfig
from mcetm.dynamics.langevin import Box, Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderConfig, fit_autoencoder, reconstruction
from mcetm.dynamics.reward import HeadConfig, LearnedTermination, fit_reward, fit_termination
from mcetm.dynamics.samples import Samples
from mcetm.dynamics.space import Space
from mcetm.dynamics.support import Support, SupportConfig, fit_support
from mcetm.dynamics.tube import Tube
from mcetm.dynamics.world import TransitionModel, World

__all__ = [
    "ANCHORED",
    "KIT",
    "PAPER",
    "PAPER_EMPO",
    "REFINE",
    "STANDARD",
    "AnchoredEnergy",
    "Autoencoder",
    "AutoencoderConfig",
    "Box",
    "CalibrationConfig",
    "Diffusion",
    "DiffusionConfig",
    "DiffusionEnsemble",
    "Disagreement",
    "Energy",
    "EnergyConfig",
    "EnergyEnsemble",
    "Gaussian",
    "GaussianConfig",
    "GaussianEnsemble",
    "HeadConfig",
    "InferenceConfig",
    "Judge",
    "Langevin",
    "LearnedTermination",
    "PlainEnergy",
    "Samples",
    "Space",
    "Support",
    "SupportConfig",
    "Threshold",
    "TransitionModel",
    "Tube",
    "World",
    "calibrate",
    "fit_autoencoder",
    "fit_diffusion",
    "fit_energy",
    "fit_gaussian",
    "fit_reward",
    "fit_support",
    "fit_termination",
    "reconstruction",
]

"""How a next state is predicted: one file per transition model, the sampler, the manifold, calibration."""

from mcetm.dynamics.calibrate import CalibrationSettings, Threshold, calibrate, held_out_energies
from mcetm.dynamics.diffusion import Denoiser, DiffusionEnsemble, DiffusionModel, fit_diffusion
from mcetm.dynamics.energy import AnchoredEnergy, Conditional, Energy, PlainEnergy
from mcetm.dynamics.energy_models import AnchoredETM, ManifoldETM, StandardETM
from mcetm.dynamics.etm import (
    ANCHORED,
    LITERAL,
    PAPER,
    PAPER_EMPO,
    STANDARD,
    EnergySettings,
    fit_energy,
)
from mcetm.dynamics.gaussian import KIT, Gaussian, GaussianEnsemble, GaussianModel, fit_gaussian
from mcetm.dynamics.inference import REFINE, EnergyTransitionModel, InferenceSettings
from mcetm.dynamics.langevin import Box, Langevin
from mcetm.dynamics.manifold import Autoencoder, AutoencoderSettings, fit_autoencoder, reconstruction
from mcetm.dynamics.model import EnergyModel, ModelSettings, Samples, TransitionModel
from mcetm.dynamics.pairs import PairScore, PairSettings, fit_pairs
from mcetm.dynamics.plain_pairs import PlainPairScore
from mcetm.dynamics.reward import HeadSettings, LearnedTermination, fit_reward, fit_termination
from mcetm.dynamics.sampler import Backend
from mcetm.dynamics.space import Space
from mcetm.dynamics.support import Support, SupportSettings, fit_support
from mcetm.dynamics.trust import TrustRegion
from mcetm.dynamics.tube import Tube
from mcetm.dynamics.world import View, World, WorldSettings

MODELS: tuple[type[ModelSettings], ...] = (
    GaussianEnsemble,
    DiffusionEnsemble,
    StandardETM,
    ManifoldETM,
    AnchoredETM,
)
"""Every transition model; a new one is a file and a word here."""

__all__ = [
    "ANCHORED",
    "KIT",
    "LITERAL",
    "MODELS",
    "PAPER",
    "PAPER_EMPO",
    "REFINE",
    "STANDARD",
    "AnchoredETM",
    "AnchoredEnergy",
    "Autoencoder",
    "AutoencoderSettings",
    "Backend",
    "Box",
    "CalibrationSettings",
    "Conditional",
    "Denoiser",
    "DiffusionEnsemble",
    "DiffusionModel",
    "Energy",
    "EnergyModel",
    "EnergySettings",
    "EnergyTransitionModel",
    "Gaussian",
    "GaussianEnsemble",
    "GaussianModel",
    "HeadSettings",
    "InferenceSettings",
    "Langevin",
    "LearnedTermination",
    "ManifoldETM",
    "ModelSettings",
    "PairScore",
    "PairSettings",
    "PlainEnergy",
    "PlainPairScore",
    "Samples",
    "Space",
    "StandardETM",
    "Support",
    "SupportSettings",
    "Threshold",
    "TransitionModel",
    "TrustRegion",
    "Tube",
    "View",
    "World",
    "WorldSettings",
    "calibrate",
    "fit_autoencoder",
    "fit_diffusion",
    "fit_energy",
    "fit_gaussian",
    "fit_pairs",
    "fit_reward",
    "fit_support",
    "fit_termination",
    "held_out_energies",
    "reconstruction",
]

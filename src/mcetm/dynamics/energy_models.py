"""Energy-based transition models as a user names them: an energy, with all the parts that it is made of."""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar, Literal

from mcetm.dynamics.etm import EnergySettings, check_network, fit_energy
from mcetm.dynamics.gaussian import GaussianEnsemble, fit_gaussian
from mcetm.dynamics.inference import EnergyTransitionModel, InferenceSettings
from mcetm.dynamics.langevin import Langevin
from mcetm.dynamics.manifold import AutoencoderSettings, fit_autoencoder
from mcetm.dynamics.model import ModelSettings, TrainingInputs
from mcetm.dynamics.space import Variable
from mcetm.dynamics.support import SupportSettings, fit_support
from mcetm.nn.mlp import Activation
from mcetm.settings import NonNegative, Positive, Weight, settings


@settings
class _ETM(EnergySettings, ModelSettings):
    """An energy-based transition model with all that it is made of."""

    has_energy: ClassVar[bool] = True

    regressor: GaussianEnsemble = field(default_factory=GaussianEnsemble)
    """The Gaussian ensemble that chains begin at, and that anchored energies correct."""
    autoencoder: AutoencoderSettings = field(default_factory=AutoencoderSettings)
    """The manifold that manifold negatives and latent chains live on; not trained where neither is used."""
    inference: InferenceSettings | None = None
    """How next states are drawn; None takes what suits the kind of energy."""
    support: SupportSettings | None = None
    """What sets the level of energies by (s, a); None: energies know next states only."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What is trained, one after the other."""
        there = {
            "regressor": True,
            "autoencoder": self.needs_manifold,
            "energy": True,
            "support": self.support,
        }
        return tuple(name for name, wanted in there.items() if wanted)

    def train(self, inputs: TrainingInputs) -> EnergyTransitionModel:
        """Train everything, or read back what the folder has."""
        check_network(self, inputs.network)
        keys, place = inputs.keys, inputs.place
        with inputs.stages("regressor"):
            regressor, _ = fit_gaussian(
                inputs.log, inputs.holdout, self.regressor, key=keys.regressor, folder=place("regressor")
            )
        autoencoder = None
        if self.needs_manifold:
            with inputs.stages("autoencoder"):
                autoencoder, _ = fit_autoencoder(
                    inputs.log, self.autoencoder, key=keys.autoencoder, folder=place("autoencoder")
                )
        inference = self.inference
        if inference is None and self.kind == "plain":
            inference = InferenceSettings()
        with inputs.stages("energy"):
            model, _ = fit_energy(
                inputs.log,
                self,
                autoencoder=autoencoder,
                regressor=regressor,
                inference=inference,
                key=keys.model,
                folder=place("energy"),
                **inputs.own,
            )
        if self.support is not None:
            with inputs.stages("support"):
                support, _ = fit_support(
                    inputs.log, inputs.holdout, self.support, key=keys.support, folder=place("support")
                )
            model = replace(model, support=support)
        return model


@settings
class ManifoldETM(_ETM):
    """MC-ETM's model: energies trained with hard negatives near the data manifold."""

    name: Literal["manifold-etm"] = "manifold-etm"
    """Its name in files and on the command line."""
    members: Positive = 3
    """Energies that are trained."""
    count: NonNegative = 6
    """Negatives per transition."""
    width: Positive = 48
    """Units of each hidden layer."""
    depth: Positive = 3
    """Hidden layers."""
    latent: Langevin = field(default_factory=lambda: Langevin(steps=10))
    """Chains of manifold negatives in latent space."""
    ambient: Langevin = field(default_factory=lambda: Langevin(steps=10))
    """Chains of negatives in state space."""
    inference: InferenceSettings | None = field(
        default_factory=lambda: InferenceSettings(
            latent=Langevin(steps=5, noise=0.1), ambient=Langevin(steps=5, noise=0.1), accept_only_lower=True
        )
    )
    """How next states are drawn; None takes what suits the kind of energy."""
    batch_size: Positive = 64
    """Transitions of a minibatch."""
    steps: Positive = 1000
    """Updates of each member."""


@settings
class StandardETM(_ETM):
    """Standard ETM: energies whose negatives begin anywhere in the box of the data, as in EMPO."""

    name: Literal["standard-etm"] = "standard-etm"
    """Its name in files and on the command line."""
    negatives: Literal["uniform", "gaussian", "manifold", "proposal"] = "uniform"
    """Where negatives come from; see `dynamics/negatives.py`."""
    variable: Variable = "boxed"
    """What chains move: the next state (the paper) or its change, in units of its spread or of its largest
    value (EMPO)."""
    members: Positive = 3
    """Energies that are trained."""
    count: NonNegative = 16
    """Negatives per transition."""
    width: Positive = 48
    """Units of each hidden layer."""
    depth: Positive = 3
    """Hidden layers."""
    ambient: Langevin = field(default_factory=lambda: Langevin(steps=50))
    """Chains of negatives in state space."""
    inference: InferenceSettings | None = field(
        default_factory=lambda: InferenceSettings(
            start="middle", latent=None, ambient=Langevin(steps=100, first=0.1, last=1e-5, noise=0.0)
        )
    )
    """How next states are drawn. The authors' own chains are too short to reach a large change."""
    batch_size: Positive = 64
    """Transitions of a minibatch."""
    steps: Positive = 1000
    """Updates of each member."""


@settings
class AnchoredETM(_ETM):
    """Energies that correct a trained Gaussian, with negatives drawn from it and ranking NCE.

    They begin as zero, which a network of your own cannot: `network=` is refused.
    """

    name: Literal["anchored-etm"] = "anchored-etm"
    """Its name in files and on the command line."""
    kind: Literal["plain", "anchored"] = "anchored"
    """A network on (s, a, s'), or what a trained Gaussian misses; see `dynamics/energy.py`."""
    negatives: Literal["uniform", "gaussian", "manifold", "proposal"] = "proposal"
    """Where negatives come from; see `dynamics/negatives.py`."""
    variable: Variable = "change"
    """What chains move: the next state (the paper) or its change, in units of its spread or of its largest
    value (EMPO)."""
    members: Positive = 3
    """Energies that are trained."""
    width: Positive = 48
    """Units of each hidden layer."""
    depth: Positive = 3
    """Hidden layers."""
    activation: Activation = "silu"
    """The activation between layers."""
    penalty: Weight = 0.0
    """Weight of the gradient penalty, which hardly ever acts: slopes are the anchor's own."""
    batch_size: Positive = 256
    """Transitions of a minibatch."""
    steps: Positive = 1000
    """Updates of each member."""

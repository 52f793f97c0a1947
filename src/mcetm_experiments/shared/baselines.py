"""MC-ETM and its baselines: the transition models of a comparison, trained on one log and asked alike."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data import Transitions
from mcetm.dynamics import (
    ANCHORED,
    PAPER_EMPO,
    REFINE,
    STANDARD,
    AutoencoderSettings,
    DiffusionEnsemble,
    EnergySettings,
    EnergyTransitionModel,
    GaussianEnsemble,
    InferenceSettings,
    TransitionModel,
    fit_autoencoder,
    fit_diffusion,
    fit_energy,
    fit_gaussian,
)
from mcetm.nn import take_members
from mcetm_experiments.shared.models import FULL_AUTOENCODER, FULL_DIFFUSION, FULL_GAUSSIAN, FULL_MLP

Draw = Callable[[Float[Array, " obs"], Float[Array, " action"], PRNGKeyArray], Float[Array, " obs"]]


def prolonged(config: GaussianEnsemble, factor: float) -> GaussianEnsemble:
    """As much training as an anchored energy has had when it is done."""
    return replace(config, steps=round(factor * config.steps))


@dataclass(frozen=True)
class BaselinesConfig:
    """The settings of every model of a comparison."""

    gaussian: GaussianEnsemble = FULL_GAUSSIAN
    """The Gaussian ensemble, which is also where chains start and what anchors stand on."""
    longer: float = 3.0
    """Steps of the longer ensemble in those of the regressor."""
    mlp: GaussianEnsemble = FULL_MLP
    """The plain MLP, for studies that ask for it."""
    brief: GaussianEnsemble = FULL_MLP
    """The plain MLP once more, with a shorter training."""
    autoencoder: AutoencoderSettings = FULL_AUTOENCODER
    """The manifold of next states."""
    standard: EnergySettings = STANDARD
    """Standard ETM."""
    plain: EnergySettings = PAPER_EMPO
    """MC-ETM as the paper has it."""
    anchored: EnergySettings = ANCHORED
    """MC-ETM with an anchor."""
    diffusion: DiffusionEnsemble = FULL_DIFFUSION
    """Conditional diffusion."""
    standard_inference: InferenceSettings = field(default_factory=lambda: InferenceSettings(latent=None))
    """How standard ETM's next states are drawn."""
    plain_inference: InferenceSettings = field(default_factory=InferenceSettings)
    """How MC-ETM's next states are drawn."""
    anchored_inference: InferenceSettings = REFINE
    """How the anchored energy's next states are drawn."""


@dataclass(frozen=True)
class Trained:
    """A model and what it cost."""

    model: Any
    history: list[dict[str, Any]]
    wall: float
    """Seconds of training, compilation and all."""
    before: float = 0.0
    """Seconds, without compilation, of the parts it needs (regressor, autoencoder)."""

    @property
    def seconds(self) -> float:
        """Training time without compilation, with that of the parts it needs."""
        return self.before + self.clock()[-1]

    def clock(self) -> list[float]:
        """Seconds of its own training after each chunk; the first, which is compiled, at the others' pace."""
        steps = np.array([line["step"] for line in self.history])
        later = sum(line["seconds"] for line in self.history[1:])
        pace = later / (steps[-1] - steps[0]) if len(steps) > 1 else self.history[0]["seconds"] / steps[0]
        return (pace * steps).tolist()


class Baselines:
    """Every model of a comparison on one log, trained when it is first asked for."""

    def __init__(
        self,
        train: Transitions,
        holdout: Transitions,
        config: BaselinesConfig,
        *,
        key: PRNGKeyArray,
        validate: Callable[[EnergyTransitionModel], dict[str, Array]] | None = None,
        chunks: int | None = None,
        folder: Path | None = None,
    ) -> None:
        """`validate` measures energies between chunks: `chunks` of them, or 1,000 steps each.

        With a folder, trainings are kept there and go on where they were stopped.
        """
        self.train, self.holdout, self.config, self._folder = train, holdout, config, folder
        self._keys = jax.random.split(key, 7)
        self._validate, self._chunks = validate, chunks

    @functools.cached_property
    def mlp(self) -> Trained:
        """The plain MLP: squared errors alone."""
        return self._regressor(self.config.mlp, self._keys[6])

    @functools.cached_property
    def brief(self) -> Trained:
        """The plain MLP after a shorter training."""
        return self._regressor(self.config.brief, self._keys[6])

    @functools.cached_property
    def gaussian(self) -> Trained:
        """The regressor, which is also where chains may start and what anchors hold on to."""
        return self._regressor(self.config.gaussian, self._keys[0])

    @functools.cached_property
    def longer(self) -> Trained:
        """The regressor after a longer training; nothing is built on it."""
        if self.config.longer == 1.0:
            return self.gaussian
        return self._regressor(prolonged(self.config.gaussian, self.config.longer), self._keys[0])

    @functools.cached_property
    def autoencoder(self) -> Trained:
        """The manifold of next states."""
        config = self.config.autoencoder
        home = self.home("autoencoder", config)
        return clocked(lambda: fit_autoencoder(self.train, config, key=self._keys[1], folder=home))

    @functools.cached_property
    def standard(self) -> Trained:
        """Standard ETM."""
        return self._energy(self.config.standard, self.config.standard_inference, self._keys[2])

    @functools.cached_property
    def plain(self) -> Trained:
        """MC-ETM as the paper has it."""
        return self._energy(self.config.plain, self.config.plain_inference, self._keys[3])

    @functools.cached_property
    def anchored(self) -> Trained:
        """The anchored energy."""
        return self._energy(self.config.anchored, self.config.anchored_inference, self._keys[4])

    @functools.cached_property
    def diffusion(self) -> Trained:
        """Conditional diffusion."""
        config, chunk = self.config.diffusion, self._chunk(self.config.diffusion.steps)
        home = self.home("diffusion", config)
        return clocked(lambda: fit_diffusion(self.train, config, key=self._keys[5], chunk=chunk, folder=home))

    def home(self, kind: str, *settings: Any) -> Path | None:
        """Where a training with these settings is kept: a folder named by all that it depends on."""
        if self._folder is None:
            return None
        told = [asdict(setting) for setting in settings]
        told += [self.train.checksum, self.holdout.checksum, jax.random.key_data(self._keys).tolist()]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{kind}-{digest[:16]}"

    def _regressor(self, config: GaussianEnsemble, key: PRNGKeyArray) -> Trained:
        if self._chunks is not None:
            config = replace(config, validate_every=self._chunk(config.steps))
        home = self.home("regressor", config)
        return clocked(lambda: fit_gaussian(self.train, self.holdout, config, key=key, folder=home))

    def _energy(self, config: EnergySettings, inference: InferenceSettings, key: PRNGKeyArray) -> Trained:
        on_manifold = config.negatives == "manifold"
        started = inference.start == "regressor" or config.kind == "anchored"
        # Asking for a part trains it, so only those that are needed are asked for.
        parts = [self.gaussian] if started else []
        parts += [self.autoencoder] if on_manifold else []
        home = self.home("energy", config, self.config.gaussian, self.config.autoencoder)
        trained = clocked(
            lambda: fit_energy(
                self.train,
                config,
                autoencoder=self.autoencoder.model if on_manifold else None,
                regressor=self.gaussian.model if started else None,
                inference=inference,
                key=key,
                chunk=self._chunk(config.steps),
                validate=self._validate,
                folder=home,
            )
        )
        return replace(trained, before=sum(part.seconds for part in parts))

    def _chunk(self, steps: int) -> int:
        return 1000 if self._chunks is None else max(1, steps // self._chunks)


def clocked(make: Callable[[], tuple[Any, list[dict[str, Any]]]]) -> Trained:
    """Train, and keep the time it took."""
    began = time.perf_counter()
    model, history = make()
    return Trained(jax.block_until_ready(model), history, time.perf_counter() - began)


@dataclass(frozen=True)
class FittedBaseline:
    """A trained model: its point prediction, its samples, and what it cost."""

    name: str
    predict: Draw
    sample: Draw
    members: tuple[Draw, ...]
    """Point predictions of its members, each for itself."""
    seconds: float
    """Training time, with that of the parts it needs (regressor, autoencoder)."""
    selected: Callable[[int], Draw] | None = None
    """Low-energy selection with so many samples of every member, for models that have energies."""


_REGRESSORS = ("mlp", "brief", "gaussian", "longer")
"""Models whose elites predict."""
NAMES = {
    "mlp": "MLP",
    "gaussian": "Gaussian ensemble",
    "longer": "Gaussian ensemble, longer",
    "standard": "standard ETM",
    "plain": "MC-ETM, plain",
    "anchored": "MC-ETM, anchored",
    "diffusion": "diffusion",
}
"""What the models are called in tables and figures."""


def train_baselines(
    train: Transitions, holdout: Transitions, config: BaselinesConfig, *, key: PRNGKeyArray
) -> Iterator[FittedBaseline]:
    """Train one ensemble after the other; all but the plain MLP."""
    baselines = Baselines(train, holdout, config, key=key)
    for kind in ("gaussian", "standard", "plain", "anchored", "diffusion"):
        yield baseline(baselines, kind)


def baseline(baselines: Baselines, kind: str) -> FittedBaseline:
    """One of the models, trained if it is not yet."""
    trained: Trained = getattr(baselines, kind)
    model = trained.model
    return FittedBaseline(
        NAMES[kind],
        point(model),
        eqx.Partial(_sample, model),
        tuple(point(one) for one in _alone(kind, model)),
        trained.seconds,
        functools.partial(_lowest, model) if model.has_energy else None,
    )


def point(model: TransitionModel) -> Draw:
    """A model's point prediction.

    The model is an argument and not a constant, so that models of one shape share compiled programs.
    """
    return eqx.Partial(_predict, model)


def _lowest(model: EnergyTransitionModel, count: int) -> Draw:
    return eqx.Partial(_select, model, count)


def _predict(model: TransitionModel, obs: Array, action: Array, key: PRNGKeyArray) -> Array:
    return model.predict(obs, action, key=key)


def _select(model: EnergyTransitionModel, count: int, obs: Array, action: Array, key: PRNGKeyArray) -> Array:
    return model.select(obs, action, count, key=key)


def _sample(model: Any, obs: Array, action: Array, key: PRNGKeyArray) -> Array:
    return model.sample(obs, action, key=key)


def _alone(kind: str, model: Any) -> list[Any]:
    """Ensembles of one member each; of a regressor those of its elites."""
    if kind in _REGRESSORS:
        return [replace(model, elites=model.elites[i : i + 1]) for i in range(model.num_members)]
    chosen = (jnp.arange(i, i + 1) for i in range(model.num_members))
    return [replace(model, members=take_members(model.members, index)) for index in chosen]


def scaled_down(config: BaselinesConfig, **changes: Any) -> BaselinesConfig:
    """The same comparison with these settings changed in every energy model."""
    energies = {name: replace(getattr(config, name), **changes) for name in ("standard", "plain", "anchored")}
    return replace(config, **energies)


def seeded(config: BaselinesConfig, seeds: int) -> BaselinesConfig:
    """One member per seed in every ensemble."""
    regressors = {
        name: replace(getattr(config, name), members=seeds, elites=seeds)
        for name in ("gaussian", "mlp", "brief")
    }
    others = ("standard", "plain", "anchored", "diffusion")
    return replace(config, **regressors, **{n: replace(getattr(config, n), members=seeds) for n in others})

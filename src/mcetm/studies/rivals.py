"""The transition models that every study compares, trained on the same log and asked in the same way."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics import (
    ANCHORED,
    PAPER_EMPO,
    REFINE,
    STANDARD,
    AutoencoderConfig,
    DiffusionConfig,
    EnergyConfig,
    EnergyEnsemble,
    GaussianConfig,
    InferenceConfig,
    fit_autoencoder,
    fit_diffusion,
    fit_energy,
    fit_gaussian,
)

Draw = Callable[[Float[Array, " obs"], Float[Array, " action"], PRNGKeyArray], Float[Array, " obs"]]


@dataclass(frozen=True)
class RivalsConfig:
    """The settings of every model of a comparison."""

    gaussian: GaussianConfig = field(default_factory=GaussianConfig)
    mlp: GaussianConfig = field(default_factory=lambda: GaussianConfig(squared=True))
    """The plain MLP, for studies that ask for it."""
    brief: GaussianConfig = field(default_factory=lambda: GaussianConfig(squared=True))
    """The plain MLP once more, with a shorter training."""
    autoencoder: AutoencoderConfig = field(default_factory=AutoencoderConfig)
    standard: EnergyConfig = STANDARD
    plain: EnergyConfig = PAPER_EMPO
    anchored: EnergyConfig = ANCHORED
    diffusion: DiffusionConfig = field(default_factory=DiffusionConfig)
    standard_inference: InferenceConfig = field(default_factory=lambda: InferenceConfig(latent=None))
    plain_inference: InferenceConfig = field(default_factory=InferenceConfig)
    anchored_inference: InferenceConfig = REFINE


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


class Rivals:
    """Every model of a comparison on one log, trained when it is first asked for."""

    def __init__(
        self,
        train: Transitions,
        holdout: Transitions,
        config: RivalsConfig,
        *,
        key: PRNGKeyArray,
        validate: Callable[[EnergyEnsemble], dict[str, Array]] | None = None,
        chunks: int | None = None,
    ) -> None:
        """`validate` measures energies between chunks: `chunks` of them, or 1,000 steps each."""
        self.train, self.holdout, self.config = train, holdout, config
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
    def autoencoder(self) -> Trained:
        """The manifold of next states."""
        return _clocked(lambda: fit_autoencoder(self.train, self.config.autoencoder, key=self._keys[1]))

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
        return _clocked(lambda: fit_diffusion(self.train, config, key=self._keys[5], chunk=chunk))

    def _regressor(self, config: GaussianConfig, key: PRNGKeyArray) -> Trained:
        if self._chunks is not None:
            config = replace(config, validate_every=self._chunk(config.steps))
        return _clocked(lambda: fit_gaussian(self.train, self.holdout, config, key=key))

    def _energy(self, config: EnergyConfig, inference: InferenceConfig, key: PRNGKeyArray) -> Trained:
        on_manifold = config.negatives == "manifold"
        started = inference.start == "regressor" or config.kind == "anchored"
        # Asking for a part trains it, so only those that are needed are asked for.
        parts = [self.gaussian] if started else []
        parts += [self.autoencoder] if on_manifold else []
        trained = _clocked(
            lambda: fit_energy(
                self.train,
                config,
                autoencoder=self.autoencoder.model if on_manifold else None,
                regressor=self.gaussian.model if started else None,
                inference=inference,
                key=key,
                chunk=self._chunk(config.steps),
                validate=self._validate,
            )
        )
        return replace(trained, before=sum(part.seconds for part in parts))

    def _chunk(self, steps: int) -> int:
        return 1000 if self._chunks is None else max(1, steps // self._chunks)


def _clocked(make: Callable[[], tuple[Any, list[dict[str, Any]]]]) -> Trained:
    began = time.perf_counter()
    model, history = make()
    return Trained(jax.block_until_ready(model), history, time.perf_counter() - began)


@dataclass(frozen=True)
class Rival:
    """A trained model: its point prediction, its samples, and what it cost."""

    name: str
    predict: Draw
    sample: Draw
    seconds: float
    """Training time, with that of the parts it needs (regressor, autoencoder)."""


def train_rivals(
    train: Transitions, holdout: Transitions, config: RivalsConfig, *, key: PRNGKeyArray
) -> Iterator[Rival]:
    """Train one ensemble after the other."""
    rivals = Rivals(train, holdout, config, key=key)
    regressor = rivals.gaussian.model
    yield _rival(
        "Gaussian ensemble", lambda o, a, k: regressor.predict(o, a)[0].mean(axis=0), rivals.gaussian
    )
    for name, kind in (
        ("standard ETM", "standard"),
        ("MC-ETM, plain", "plain"),
        ("MC-ETM, anchored", "anchored"),
    ):
        trained = getattr(rivals, kind)
        yield _rival(name, lambda o, a, k, model=trained.model: model.predict(o, a, key=k), trained)
    diffusion = rivals.diffusion.model
    yield _rival("diffusion", lambda o, a, k: diffusion.predict(o, a), rivals.diffusion)


def _rival(name: str, predict: Draw, trained: Trained) -> Rival:
    sample = trained.model.sample
    return Rival(name, predict, lambda o, a, k: sample(o, a, key=k), trained.seconds)


def scaled_down(config: RivalsConfig, **changes: Any) -> RivalsConfig:
    """The same comparison with these settings changed in every energy model."""
    energies = {name: replace(getattr(config, name), **changes) for name in ("standard", "plain", "anchored")}
    return replace(config, **energies)


def seeded(config: RivalsConfig, seeds: int) -> RivalsConfig:
    """One member per seed in every ensemble."""
    regressors = {
        name: replace(getattr(config, name), members=seeds, elites=seeds)
        for name in ("gaussian", "mlp", "brief")
    }
    others = ("standard", "plain", "anchored", "diffusion")
    return replace(config, **regressors, **{n: replace(getattr(config, n), members=seeds) for n in others})

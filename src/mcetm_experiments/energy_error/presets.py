"""How much the energy-error study trains and looks at, by preset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mcetm.agents import BC
from mcetm.dynamics import (
    ANCHORED,
    REFINE,
    CalibrationSettings,
    EnergySettings,
    InferenceSettings,
    SupportSettings,
)
from mcetm.pipeline import make_config
from mcetm_experiments.energy_error.settings import EnergyKind
from mcetm_experiments.energy_error.value import ValueConfig
from mcetm_experiments.shared.locomotion import ANCHOR_HEAVY_TIME, TASKS, anchor_heavy
from mcetm_experiments.shared.models import FULL_AUTOENCODER, FULL_GAUSSIAN, ModelsConfig


@dataclass(frozen=True)
class EnergyErrorConfig:
    """How much is trained and looked at."""

    models: ModelsConfig
    """The energy, its parts and its calibration."""
    value: ValueConfig = field(default_factory=ValueConfig)
    """How the behaviour is cloned and evaluated, for penalties on Q."""
    seeds: int = 3
    """Independent trainings."""
    transitions: int | None = None
    """Collect this many instead of reading the whole dataset."""
    holdout: float = 0.1
    """One half sets thresholds, the other is looked at."""
    rows: int = 3000
    """Of each rung at most."""
    samples: int = 5
    """N, next states that every member draws."""
    neighbours: int = 100_000
    """Rows of the log among which the nearest is sought."""
    longer: float = ANCHOR_HEAVY_TIME
    """Steps of the longer ensemble in those of the anchor, for about the training time of the energy with its
    anchor and support."""
    rate: float = 0.01
    """Share of held-out rows above δ, for every score."""
    batch_size: int = 500
    """Rows that are looked at together."""
    shown: int = 2000
    """Rows in the figure."""


def _quick(dataset: str) -> EnergyErrorConfig:
    models = ModelsConfig(
        gaussian=replace(
            FULL_GAUSSIAN,
            members=4,
            elites=3,
            width=100,
            depth=3,
            steps=6000,
            batch_size=256,
            learning_rate=4e-3,
        ),
        autoencoder=replace(FULL_AUTOENCODER, latent_dim=5, width=64, depth=2, steps=2000, batch_size=256),
        energy=replace(_small(ANCHORED, 400), schedule="cosine"),
        inference=replace(REFINE, ambient=replace(REFINE.ambient, steps=10)),
        support=SupportSettings(width=100, depth=3, batch_size=256, steps=3500),
        calibration=CalibrationSettings(samples=4, rows=1000),
    )
    small: dict[str, Any] = {"width": 64, "batch_size": 256}
    value = ValueConfig(BC(**small, depth=2, learning_rate=1e-3, steps=2000), **small, rate=1e-3, steps=3000)
    # Fewer neighbours than rows of any split: seeds then share one program.
    sizes = {"transitions": 30_000, "neighbours": 20_000, "rows": 300, "samples": 4, "batch_size": 300}
    return EnergyErrorConfig(models, value, seeds=2, longer=1.4, **sizes)


def _small(energy: EnergySettings, steps: int) -> EnergySettings:
    sizes: dict[str, int] = {"members": 3, "count": 8, "width": 64, "depth": 3, "batch_size": 64}
    return _shortened(replace(energy, **sizes, steps=steps))


_Chained = TypeVar("_Chained", EnergySettings, InferenceSettings)


def _shortened(config: _Chained) -> _Chained:
    """With chains of ten steps."""
    latent = None if config.latent is None else replace(config.latent, steps=10)
    return replace(config, latent=latent, ambient=replace(config.ambient, steps=10))


def _to_the_end(dataset: str) -> ModelsConfig:
    """The paper's models after 100 epochs of the nine tenths of a million rows that they are trained on."""
    models = ModelsConfig.of(make_config("paper-empo", dataset=dataset))
    # δ is absolute here; beside it the tables show what share of held-out energies a quantile would cut off.
    calibration = replace(models.calibration, quantile=0.99)
    return replace(models, energy=replace(models.energy, steps=88_000), calibration=calibration)


PRESETS: dict[str, Callable[[str], EnergyErrorConfig]] = {
    "quick": _quick,
    "fast": lambda dataset: EnergyErrorConfig(
        anchor_heavy(ModelsConfig.of(make_config("fast", dataset=dataset)))
    ),
    "paper": lambda dataset: EnergyErrorConfig(_to_the_end(dataset), samples=10, longer=1.0),
}
PRESET_TASKS = {"quick": TASKS[:1], "fast": TASKS, "paper": TASKS}


def with_energy(models: ModelsConfig, kind: EnergyKind, *, small: bool) -> ModelsConfig:
    """The same models with our anchored energy or the paper's plain one, with EMPO's meaning or literal."""
    if models.energy.kind == kind:
        return models
    if kind == "anchored":
        refine = replace(REFINE, ambient=replace(REFINE.ambient, steps=10))
        return replace(models, energy=ANCHORED, inference=refine)
    paper = ModelsConfig.of(make_config("paper" if kind == "literal" else "paper-empo"))
    energy, inference = paper.energy, paper.inference
    assert inference is not None  # noqa: S101 (the presets state theirs)
    if small:
        energy, inference = _small(energy, 1000), _shortened(inference)
    elif models.energy.kind == "plain":  # another reading of the same energy: as long a training
        energy = replace(energy, steps=models.energy.steps)
    return replace(models, energy=energy, inference=inference, support=None)

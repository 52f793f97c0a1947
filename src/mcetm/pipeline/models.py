"""The model stage of a run: everything that stands for the world, trained in the run's folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics import (
    Autoencoder,
    EnergyEnsemble,
    GaussianEnsemble,
    InferenceConfig,
    Threshold,
    World,
    calibrate,
    fit_autoencoder,
    fit_energy,
    fit_gaussian,
    fit_reward,
    fit_support,
    fit_termination,
)
from mcetm.dynamics.calibrate import held_out_energies
from mcetm.dynamics.disagreement import Disagreement
from mcetm.pipeline.algorithms import ALGORITHMS, Needs
from mcetm.pipeline.config import ModelsConfig, PolicyConfig
from mcetm.pipeline.stages import Stages
from mcetm.tasks.registry import Task


@dataclass(frozen=True)
class Models:
    """Trained parts; the energy, its manifold and its threshold are there if the algorithm needs them."""

    regressor: GaussianEnsemble
    reward: Any
    termination: Any
    autoencoder: Autoencoder | None = None
    energy: EnergyEnsemble | None = None
    threshold: Threshold | None = None
    known: Threshold | None = None
    """Disagreement of the regressor above which a pair is unknown."""
    held_out: np.ndarray | None = None
    """Energies at inferred states of held-out data, by member."""

    @property
    def deltas(self) -> np.ndarray | None:
        """The threshold of each member."""
        return None if self.threshold is None else np.asarray(self.threshold.values)

    def world(self, algo: str, policy: PolicyConfig) -> World:
        """The world as an algorithm sees it."""
        common: dict[str, Any] = {
            "reward": self.reward,
            "termination": self.termination,
            "count": policy.samples,
            "rollout_rule": policy.rollout_rule,
            "target_rule": policy.target_rule,
        }
        recipe = ALGORITHMS[algo]
        common["uncertainty"] = recipe.uncertainty
        if recipe.needs == "energy":
            threshold = self.threshold if policy.truncate and recipe.truncates else None
            return World(self.energy, threshold=threshold, **common)  # pyright: ignore[reportArgumentType]
        if recipe.needs == "disagreement":
            return World(Disagreement(self.regressor), threshold=self.known, **common)
        return World(self.regressor, **common)


def train_models(
    train: Transitions,
    holdout: Transitions,
    config: ModelsConfig,
    task: Task | None,
    *,
    needs: Collection[Needs],
    key: PRNGKeyArray,
    folder: Path,
    earlier: Sequence[Path] = (),
    stages: Stages | None = None,
) -> Models:
    """Train what is needed; what one of the earlier runs has, or the folder itself, is read from there."""
    stages = stages or Stages()

    def place(name: str) -> Path:
        return next((other / name for other in earlier if (other / name).is_dir()), folder / name)

    keys = jax.random.split(key, 6)
    with stages.stage("regressor"):
        regressor, _ = fit_gaussian(train, holdout, config.gaussian, key=keys[0], folder=place("regressor"))
    with stages.stage("reward"):
        reward, _ = fit_reward(train, holdout, config.reward, key=keys[1], folder=place("reward"))
    termination = None
    if config.termination == "auto" and task is not None:
        termination = task.termination
    elif config.termination != "none" and train.terminated.any():
        with stages.stage("termination"):
            termination, _ = fit_termination(
                train, holdout, config.reward, key=keys[2], folder=place("termination")
            )
    calibration_key, sample_key = jax.random.split(keys[5])
    known = None
    if "disagreement" in needs:
        # An absolute threshold is one for energies.
        rule = replace(config.calibration, mode="quantile")
        with stages.stage("calibration"):
            known = calibrate(Disagreement(regressor), holdout, rule, key=calibration_key)
    if "energy" not in needs:
        return Models(regressor, reward, termination, known=known)
    autoencoder = None
    if config.energy.negatives == "manifold":
        with stages.stage("autoencoder"):
            autoencoder, _ = fit_autoencoder(
                train, config.autoencoder, key=keys[3], folder=place("autoencoder")
            )
    inference = config.inference
    if inference is None and config.energy.kind == "plain":
        inference = InferenceConfig()
    with stages.stage("energy"):
        energy, _ = fit_energy(
            train,
            config.energy,
            autoencoder=autoencoder,
            regressor=regressor,
            inference=inference,
            key=keys[4],
            folder=place("energy"),
        )
    if config.support is not None:
        support_key = jax.random.fold_in(key, 6)  # the others stay as they are without it
        with stages.stage("support"):
            support, _ = fit_support(train, holdout, config.support, key=support_key, folder=place("support"))
        energy = replace(energy, support=support)
    with stages.stage("calibration"):
        threshold = calibrate(energy, holdout, config.calibration, key=calibration_key)
        energies_found = held_out_energies(energy, holdout, config.calibration, threshold, key=sample_key)
    return Models(
        regressor, reward, termination, autoencoder, energy, threshold, known, np.asarray(energies_found)
    )

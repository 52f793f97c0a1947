"""The model stage of a run: a transition model and the world around it, trained in the run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.data.transitions import Transitions
from mcetm.dynamics import World, held_out_energies
from mcetm.dynamics.model import part_keys
from mcetm.errors import UserError
from mcetm.files import Folders
from mcetm.pipeline.config import TrainConfig, read_config
from mcetm.pipeline.stages import Stages
from mcetm.tasks.registry import Task


@dataclass(frozen=True)
class Models:
    """The world of a run, and what its report shows of it."""

    world: World
    held_out: np.ndarray | None = None
    """Energies at inferred states of held-out data, by member, where the model has energies."""

    @property
    def deltas(self) -> np.ndarray | None:
        """The threshold of each member's energies."""
        trust = self.world.trust
        return None if trust is None or trust.next_state is None else np.asarray(trust.next_state.values)

    def of_part(self, part: str | None) -> World:
        """The world around a part of the model, such as its regressor; None is the model itself."""
        found: Any = self.world.model if part is None else getattr(self.world.model, part, None)
        if found is None:
            return self.world
        return self.world if found is self.world.model else replace(self.world, model=found, trust=None)


def train_models(
    config: TrainConfig,
    train: Transitions,
    holdout: Transitions,
    task: Task | None,
    *,
    folder: Path,
    stages: Stages | None = None,
) -> Models:
    """Train the model and its world; what an earlier run has, or the folder itself, is read from there."""
    stages = stages or Stages()
    folders = Folders(folder, earlier_models(config))
    model = config.model.fit(train, holdout=holdout, seed=config.seed, folder=folders, stages=stages.stage)
    world = World.of(
        model,
        train,
        holdout=holdout,
        config=config.world,
        task=task,
        seed=config.seed,
        folder=folders,
        stages=stages.stage,
    )
    if world.trust is None or world.trust.next_state is None:
        return Models(world)
    with stages.stage("calibration"):
        energies = held_out_energies(
            model,
            holdout,
            config.world.calibration,
            world.trust.next_state,
            key=part_keys(config.seed).held_out,
        )
    return Models(world, np.asarray(energies))


def earlier_models(config: TrainConfig) -> list[Path]:
    """The folders of an earlier run's models, where they are used, and of those it has from others itself."""
    found: list[Path] = []
    while config.models_from is not None and Path(config.models_from) / "models" not in found:
        run = Path(config.models_from)
        found.append(run / "models")
        if not (run / "config.json").is_file():
            break
        config = read_config(run / "config.json")
    return found


def check_models(models: Sequence[Path], given: Path) -> None:
    """Refuse a folder that holds no models of an earlier run."""
    if not any(folder.is_dir() for folder in models):
        raise UserError(f"{given} holds no models of an earlier run.")

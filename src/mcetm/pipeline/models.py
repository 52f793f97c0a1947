"""The model stage of a run: a transition model and the world around it, trained in the run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from mcetm.console import say
from mcetm.data.transitions import Transitions
from mcetm.dynamics import EnergyModel, World, held_out_energies
from mcetm.dynamics.model import part_keys
from mcetm.errors import UserError
from mcetm.files import Folders
from mcetm.pipeline.config import TrainConfig, read_config
from mcetm.pipeline.results import read_seconds
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
        model = self.world.model
        found = model if part is None else model.part(part)
        return self.world if found is model else replace(self.world, model=found, trust=None)


def train_models(
    config: TrainConfig,
    train: Transitions,
    holdout: Transitions,
    task: Task | None,
    *,
    folder: Path,
    stages: Stages | None = None,
) -> Models:
    """Train the model and its world; what the folder itself has, or an earlier run, is read from there.

    The folder of another run is only read: what is not finished there is trained here.
    """
    stages = stages or Stages()
    world = read_world(config, train, holdout, task, folder=folder, stages=stages)
    if world.trust is None or world.trust.next_state is None:
        return Models(world)
    with stages.stage("calibration"):
        energies = held_out_energies(
            cast(EnergyModel, world.model),
            holdout,
            config.world.calibration,
            world.trust.next_state,
            key=part_keys(config.seed).held_out,
        )
    return Models(world, np.asarray(energies))


def read_world(
    config: TrainConfig,
    train: Transitions,
    holdout: Transitions,
    task: Task | None,
    *,
    folder: Path,
    stages: Stages | None = None,
) -> World:
    """The world of a run; of what is finished nothing is trained, and the limits are computed again."""
    stages = stages or Stages()
    finished, begun = _parts(earlier_models(config))
    own = [name for name in {*finished, *begun} if (folder / name).is_dir()]
    for name in begun.keys() - finished.keys() - set(own):
        say(f"{begun[name]} is not finished, so this part is trained anew here.")
    folders = Folders(folder, {name: path for name, path in finished.items() if name not in own})
    model = config.model.fit(train, holdout=holdout, seed=config.seed, folder=folders, stages=stages.stage)
    return World.of(
        model,
        train,
        holdout=holdout,
        config=config.world,
        task=task,
        seed=config.seed,
        folder=folders,
        stages=stages.stage,
    )


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


def _parts(models: Sequence[Path]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Parts of models by name, each where it is first found: those that are finished, and the others."""
    finished: dict[str, Path] = {}
    begun: dict[str, Path] = {}
    for folder in models:
        over = read_seconds(folder.parent / "seconds.json") if folder.is_dir() else {}
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.is_dir():
                (finished if path.name in over else begun).setdefault(path.name, path)
    return finished, begun


def check_models(models: Sequence[Path], given: Path) -> None:
    """Refuse a folder that holds no models of an earlier run."""
    finished, begun = _parts(models)
    if begun and not finished:
        raise UserError(f"The models of {given} are not finished; go on with: mcetm train --resume {given}")
    if not finished:
        raise UserError(f"{given} holds no models of an earlier run.")

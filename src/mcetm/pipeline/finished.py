"""A finished run read back: its log, its models and its learners, for whatever wants to look at them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jax

from mcetm.agents.learner import Learner
from mcetm.data.transitions import Transitions
from mcetm.errors import UserError
from mcetm.pipeline.algorithms import ALGORITHMS
from mcetm.pipeline.config import TrainConfig, read_config
from mcetm.pipeline.models import Models, train_models
from mcetm.pipeline.policy import train_policies
from mcetm.pipeline.train import action_bounds, earlier_models, read_log, seeds_of
from mcetm.tasks.registry import Task, get_task


@dataclass(frozen=True)
class Finished:
    """What a run was made of and what it left."""

    config: TrainConfig
    task: Task | None
    train: Transitions
    holdout: Transitions
    models: Models
    learners: Learner
    """Seeds on a leading axis."""


def read_finished(folder: Path) -> Finished:
    """Read a run of an algorithm with an energy; nothing is trained."""
    config = read_config(folder / "config.json")
    if not (folder / "results.json").is_file():
        raise UserError(f"{folder} is not finished; go on with: mcetm train --resume {folder}")
    if ALGORITHMS[config.algo].needs != "energy":
        raise UserError(f"{folder} was trained with {config.algo}, which has no energy; mcetm has one.")
    log = read_log(config, infos=True)
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    train, holdout = log.split(config.holdout, seed=config.seed)
    # Finished stages are read, each checked against its settings and its data.
    models = train_models(
        train,
        holdout,
        config.models,
        task,
        needs={"energy"},
        key=jax.random.key(config.seed),
        folder=folder / "models",
        earlier=earlier_models(config),
    )
    trained = train_policies(
        train,
        models.world(config.algo, config.policy),
        config.algo,
        config.policy,
        action_bounds(train),
        task,
        seeds=seeds_of(config),
        folder=folder,
        label=config.algo,
    )
    assert trained.learner is not None  # noqa: S101 (algorithms with an energy have one)
    return Finished(config, task, train, holdout, models, trained.learner)

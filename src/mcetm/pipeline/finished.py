"""A finished run read back: its log, its models and its learners, for whatever wants to look at them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mcetm.agents.fit import Agent, fit_agent
from mcetm.data.transitions import Transitions
from mcetm.dynamics import World
from mcetm.errors import UserError
from mcetm.pipeline.config import TrainConfig, read_config
from mcetm.pipeline.models import Models, train_models
from mcetm.pipeline.source import read_log_again
from mcetm.pipeline.train import seeds_of
from mcetm.tasks.registry import Task, get_task


@dataclass(frozen=True)
class Finished:
    """What a run was made of and what it left."""

    config: TrainConfig
    task: Task | None
    train: Transitions
    holdout: Transitions
    models: Models
    agent: Agent


def read_world(folder: Path) -> tuple[TrainConfig, World, Transitions]:
    """The settings of a run, its world as it was trained, and the whole log; nothing is trained."""
    config = read_config(folder / "config.json")
    if not (folder / "results.json").is_file():
        raise UserError(f"{folder} is not finished; go on with: mcetm train --resume {folder}")
    if config.model is None:
        raise UserError(f"{folder} has no model: {config.label} learns without one.")
    log = read_log_again(config, folder)
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    train, holdout = log.split(config.holdout, seed=config.seed)
    return config, train_models(config, train, holdout, task, folder=folder / "models").world, log


def read_finished(folder: Path) -> Finished:
    """Read a run of an algorithm with an energy; nothing is trained."""
    config = read_config(folder / "config.json")
    if not (folder / "results.json").is_file():
        raise UserError(f"{folder} is not finished; go on with: mcetm train --resume {folder}")
    if config.model is None or not config.model.has_energy:
        raise UserError(f"{folder} has a model without energies, or none; a run of mcetm has one.")
    log = read_log_again(config, folder, infos=True)
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    train, holdout = log.split(config.holdout, seed=config.seed)
    # Finished stages are read, each checked against its settings and its data.
    models = train_models(config, train, holdout, task, folder=folder / "models")
    agent = fit_agent(
        config.algorithm,
        train,
        models.world,
        seeds=seeds_of(config),
        task=task,
        evaluation=config.evaluation,
        folder=folder,
        label=config.label,
    )
    return Finished(config, task, train, holdout, models, agent)

"""A cell of a table: one algorithm with its settings on one log, some seeds in one world, one small file.

A file's name has the hash of the settings and of the data, so that a cell is never trained twice and never
taken for another. A cell that was stopped goes on where it was; one that another process is training is left
to it. Cells that need the same world share it: it is trained once. Whatever a table says of a cell is read
from its file alone.

    cells/NAME.json     what was found
    runs/NAME/          the run, without its checkpoints once it is finished
    worlds/HASH/        models that several cells learn in

A cell is measured in the environment of its log's task. One without is measured by what is estimated of its
policies from the log alone; a search may want that in any case.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcetm.agents.policy import Policy, load_policy
from mcetm.console import one_line
from mcetm.data.transitions import Transitions
from mcetm.documents import read_json
from mcetm.errors import UserError
from mcetm.estimates import Asked, EstimateSettings, estimate_policies
from mcetm.evaluation.returns import evaluate_policies
from mcetm.files import write_json
from mcetm.pipeline.cell_result import CellResult, Estimated, Scale, read_cell
from mcetm.pipeline.config import TrainConfig, name_of, plain_of
from mcetm.pipeline.lock import locked
from mcetm.pipeline.models import train_models
from mcetm.pipeline.results import learning_curve, read_seconds
from mcetm.pipeline.source import read_log
from mcetm.pipeline.stages import Stages
from mcetm.pipeline.train import seeds_of, train_run
from mcetm.settings import to_plain
from mcetm.tasks.registry import get_task
from mcetm.training.metrics import MetricsFile

EVALUATION_SEED = 1_000
"""Of the environments that finished policies are measured in: no training looks at these starts."""
_BESIDE = ("dataset", "columns", "task", "models_from", "baselines", "label", "preset")
"""Settings that do not change what is found: where data and models lie, what else is trained, names."""


@dataclass(frozen=True)
class Cell:
    """What is to be found out, and what tables call it."""

    config: TrainConfig
    log: str
    """What tables call the data, wherever they lie."""
    episodes: int = 20
    """Episodes of each seed's last policy."""
    estimate: EstimateSettings | None = None
    """How its policies' returns are estimated; None where they are not."""

    @property
    def key(self) -> str:
        """The hash of all that decides, with the data, what the cell finds."""
        settings = {name: part for name, part in plain_of(self.config).items() if name not in _BESIDE}
        settings |= {"episodes": self.episodes}
        if self.config.task is not None:  # else the log knows its own
            settings["task"] = self.config.task
        if self.estimate is not None:
            settings["estimate"] = to_plain(self.estimate)
        return hash_of(settings)

    def name(self, log: Transitions) -> str:
        """What its file and its run are called, on these data."""
        words = f"{self.log} {name_of(type(self.config.algorithm))} {self.config.seed}"
        plain = re.sub(r"[^\w.+-]+", "-", words, flags=re.ASCII).strip("-").lower()
        return f"{plain}-{hash_of([self.key, log.checksum])}"

    def file(self, folder: Path, log: Transitions) -> Path:
        """Where its result is, or will be."""
        return folder / "cells" / f"{self.name(log)}.json"

    def world(self, log: Transitions) -> str | None:
        """The name of the models that it learns in, which other cells may share; None where it needs none."""
        if self.config.model is None:
            return None
        return hash_of(_world_settings(self.config, log))


def run_cell(cell: Cell, folder: Path, log: Transitions | None = None) -> CellResult:
    """The result of a cell, trained or gone on with if it is not there; the run's folder lies beside it.

    `BusyError` says that another process is at this cell, or at the world it needs.
    """
    config = replace(cell.config, baselines=(), models_from=None)
    log = read_log(config) if log is None else log
    if log.metadata.task is None and cell.estimate is None:
        raise UserError(f"{cell.log} has no task to measure returns in; name one with --task.")
    file = cell.file(folder, log)
    if file.exists():
        return read_cell(file)
    world_seconds = {}
    if config.model is not None:
        world = _world(config, folder / "worlds", log)
        world_seconds = {
            f"world: {name}": took for name, took in read_seconds(world / "seconds.json").items()
        }
        config = replace(config, models_from=str(world.resolve()))
    place = folder / "runs" / file.stem
    if (place / "config.json").exists():
        # Equal but for what the name leaves out: where data and models lie may have changed since.
        with locked(place):
            write_json(place / "config.json", plain_of(config))
    run = train_run(config, place, log)
    task, outcome = run.task, run.outcomes[-1]
    policies = {f"seed-{n}": load_policy(place / "policy" / f"seed-{n}") for n in seeds_of(config)}
    networks = [policy.network for policy in policies.values()]
    found = (
        ()
        if task is None
        else evaluate_policies(task, networks, episodes=cell.episodes, seed=EVALUATION_SEED)
    )
    estimates = None if cell.estimate is None else _estimated(cell, policies, log, place)
    curve = learning_curve(MetricsFile(place / "metrics.jsonl").read(), config.seeds)
    scores = None if task is None else task.scores
    result = CellResult(
        key=cell.key,
        log=cell.log,
        label=config.label,
        task=None if task is None else task.name,
        scale=None
        if scores is None
        else Scale(random=scores.random, expert=scores.expert, origin=scores.origin),
        data=log.checksum,
        data_return=float(log.episode_returns.mean()),
        rows=len(log),
        notes=list(log.metadata.notes),
        seeds=seeds_of(config),
        world=config.seed,
        updates=config.algorithm.updates,
        returns=[list(evaluation.returns) for evaluation in found],
        lengths=[list(evaluation.lengths) for evaluation in found],
        curve_steps=[] if curve is None else curve.updates.tolist(),
        curve=[] if curve is None else curve.returns.tolist(),
        diagnosis=outcome.diagnosis,
        estimates=estimates,
        seconds={**world_seconds, **read_seconds(place / "seconds.json")},
        settings=plain_of(config),
        environment=read_json(place / "environment.json", dict[str, Any]),
    )
    write_json(file, result.model_dump())
    # They are most of what a run takes on disk, and the result is safe.
    shutil.rmtree(place / "checkpoints", ignore_errors=True)
    return result


def _estimated(cell: Cell, policies: Mapping[str, Policy], log: Transitions, place: Path) -> list[Estimated]:
    """What is estimated of each seed's policy; the run keeps all that every estimator says of it."""
    asked = [Asked.of(policy, name, log) for name, policy in policies.items()]
    stages = Stages(place / "seconds.json")
    with stages.stage("estimates"):
        found = estimate_policies(asked, log, cell.estimate, seed=cell.config.seed)
    summaries = []
    for one in found.of_policies:
        one.save(place / "estimates", one.policy)
        chosen = one.chosen
        summaries.append(
            Estimated(
                value=None if chosen is None else chosen.value,
                interval=None if chosen is None else chosen.interval,
                believed=one.believed,
                verdict=one_line(one.verdict, 2000),
            )
        )
    return summaries


def _world(config: TrainConfig, worlds: Path, log: Transitions) -> Path:
    """The folder of the models that a cell learns in, trained if they are not there."""
    settings = _world_settings(config, log)
    place = worlds / hash_of(settings)
    finished = place / "world.json"
    if finished.exists():
        return place
    with locked(place):
        if not finished.exists():
            train, holdout = log.split(config.holdout, seed=config.seed)
            task = None if log.metadata.task is None else get_task(log.metadata.task)
            stages = Stages(place / "seconds.json")
            train_models(config, train, holdout, task, folder=place / "models", stages=stages)
            write_json(finished, settings)
    return place


def _world_settings(config: TrainConfig, log: Transitions) -> dict[str, Any]:
    """All that decides what a cell's models are."""
    plain = plain_of(config)
    settings = {name: plain[name] for name in ("model", "world", "seed", "holdout")}
    return settings | {"task": log.metadata.task, "data": log.checksum}


def hash_of(plain: Any) -> str:
    """A short name for plain data, the same wherever it is computed."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]

"""The main job, end to end: data → models → calibration → policy → evaluation → run folder.

Every stage is a `fit` with a folder of its own inside the run, so a run that was stopped goes on by doing the
same again: finished stages are read back, the unfinished one continues from its newest checkpoint, bit for
bit.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.agents.fit import Agent, fit_agent, mean_returns
from mcetm.agents.inside import Inside, inside_of
from mcetm.agents.policy import Policy
from mcetm.data.card import Card, make_card
from mcetm.data.transitions import Transitions
from mcetm.dynamics.accuracy import accuracy_of
from mcetm.errors import UserError
from mcetm.files import write_json
from mcetm.memory import is_shortage
from mcetm.pipeline.config import Baseline, TrainConfig, plain_of, read_config
from mcetm.pipeline.diagnosis import diagnose, visit
from mcetm.pipeline.environment import describe_environment
from mcetm.pipeline.folder import compared_folder
from mcetm.pipeline.lock import is_free_for_a_run, locked
from mcetm.pipeline.models import Models, train_models
from mcetm.pipeline.page import find_regions, make_page
from mcetm.pipeline.results import write_card
from mcetm.pipeline.source import read_log
from mcetm.pipeline.stages import Stages
from mcetm.report.findings import EnergyCounts, Findings
from mcetm.tasks.environments import check_environment
from mcetm.tasks.own import module_file
from mcetm.tasks.registry import Task, get_task
from mcetm.training.loggers import LoggerName, make_logger, require_logger
from mcetm.training.sizes import check_sizes

_SCORED = 20_000
"""Held-out rows of which it is asked whether policies are trusted there, at most."""


@dataclass(frozen=True)
class Outcome:
    """One line of the table: an algorithm and what its seeds reached."""

    name: str
    returns: tuple[float, ...] | None
    """Mean return of each seed; None where there is no environment to measure it in."""
    history: list[dict[str, Any]]
    diagnosis: dict[str, list[float]] | None = None
    """Values and model where the policies go, by seed; see `pipeline/diagnosis.py`."""


@dataclass(frozen=True)
class Run:
    """What a run found, and where it is."""

    folder: Path
    config: TrainConfig
    data_return: float
    outcomes: tuple[Outcome, ...]
    models: Models | None
    task: Task | None


def train_run(
    config: TrainConfig,
    folder: Path,
    log: Transitions,
    card: Card | None = None,
    *,
    loggers: Sequence[LoggerName] = (),
) -> Run:
    """Begin a run, or go on with it, alone in its folder.

    What is refused before anything was learned leaves nothing behind. `loggers` get the metrics of policies.
    """
    for name in loggers:
        require_logger(name)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is not a folder and not a run; choose another --out.")
    others = {f"baselines.{i}.algorithm": other.algorithm for i, other in enumerate(config.baselines)}
    check_sizes({"model": config.model, "world": config.world}, log)
    check_sizes({"algorithm": config.algorithm, **others}, log, seeds=config.seeds)
    with locked(folder):
        begun = start_run(config, folder)
        try:
            return run_training(folder, config, log, card, loggers=loggers)
        except (UserError, MemoryError, RuntimeError) as error:
            if begun and (isinstance(error, UserError) or is_shortage(error)):
                _withdraw(folder)
            raise


def start_run(config: TrainConfig, folder: Path) -> bool:
    """Make the folder of a new run, if there is none; a folder that holds another run is refused."""
    path = folder / "config.json"
    if path.exists():
        if plain_of(read_config(path)) != plain_of(config):
            raise UserError(
                f"{folder} holds a run with other settings; choose another --out, or --resume it."
            )
        return False
    if folder.exists() and (not folder.is_dir() or not is_free_for_a_run(folder)):
        raise UserError(f"{folder} is not empty and not a run; choose another --out.")
    write_json(path, plain_of(config))
    return True


def _withdraw(folder: Path) -> None:
    """Take back what a run wrote before it learned anything."""
    if any(folder.rglob("metrics.jsonl")):
        return
    for name in ("config.json", "environment.json", "card.json", "seconds.json"):
        (folder / name).unlink(missing_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):  # what is inside comes first
        with contextlib.suppress(OSError):
            path.rmdir()


def run_training(
    folder: Path,
    config: TrainConfig,
    log: Transitions | None = None,
    card: Card | None = None,
    *,
    loggers: Sequence[LoggerName] = (),
) -> Run:
    """Do all that the configuration says and the folder does not hold yet; `log` if it is already read."""
    log = read_log(config) if log is None else log
    card = make_card(log) if card is None else card
    write_card(folder, card)
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    measured = None
    if task is not None:
        check_environment(task.env_id, task.env_kwargs)
        measured = _measured(config, task)
    environment = {**describe_environment(), "dataset_checksum": log.checksum, "measured_in": measured}
    write_json(folder / "environment.json", environment)
    train, holdout = log.split(config.holdout, seed=config.seed)
    lines = _lines(config)
    stages = Stages(folder / "seconds.json", _plan(config, log, task))
    models = None
    if config.model is not None:
        models = train_models(config, train, holdout, task, folder=folder / "models", stages=stages)
    outcomes: list[Outcome] = []
    inside: list[Inside] = []
    scored: list[Policy] = []
    visited: list[np.ndarray] | None = None
    for line in lines:
        own = line is lines[-1]
        place = folder if own else compared_folder(folder, line.label)
        sent = [
            make_logger(name, place, title=f"{folder.name}: {line.label}", config=_facts(config, line, log))
            for name in loggers
        ]
        with stages.stage(f"policy: {line.label}"), contextlib.ExitStack() as closing:
            for logger in sent:
                closing.callback(logger.close)
            agent = fit_agent(
                line.algorithm,
                train,
                None if models is None else models.of_part(line.part),
                seeds=seeds_of(config),
                task=task,
                evaluation=config.evaluation,
                folder=place,
                callbacks=sent,
                label=line.label,
            )
        if own:
            _save(folder, agent, config, task, log.checksum)
            scored = [policy for policy in agent.policies if policy.pairs is not None]
            inside = [inside_of(policy, holdout.head(_SCORED)) for policy in scored]
        found = diagnosis = None
        if task is not None:
            with stages.stage("evaluation and diagnosis"):
                episodes = config.evaluation.episodes
                found = tuple(mean_returns(agent.actors, task, episodes, config.seeds))
                if agent.learner is not None:
                    went = visit(agent, task, episodes=episodes)
                    diagnosis = diagnose(agent, went, holdout)
                    visited = [rows["obs"] for rows in went] if own else None
        outcomes.append(Outcome(line.label, found, agent.history, diagnosis))
    run = Run(folder, config, float(log.episode_returns.mean()), tuple(outcomes), models, task)
    results = results_of(run)
    write_json(folder / "results.json", results)
    with stages.stage("report"):
        regions = None
        if scored:
            regions = find_regions(scored, holdout, log, visited)
        energies = ()
        if models is not None and models.held_out is not None and models.deltas is not None:
            energies = EnergyCounts.of(models.held_out, models.deltas)
        accuracy = None if models is None else accuracy_of(models.world.model, holdout)
        Findings(tuple(inside), regions, energies, accuracy).save(folder)
        make_page(folder)
    return run


def _plan(config: TrainConfig, log: Transitions, task: Task | None) -> list[str]:
    """The stages of a run, as far as they are known beforehand."""
    plan: list[str] = []
    if config.model is not None:
        ends = config.world.termination != "none" and log.terminated.any()
        learned = ends and (config.world.termination == "learned" or task is None)
        parts = {"reward": True, "termination": learned, "pairs": config.world.pairs, "calibration": True}
        plan += [*config.model.parts, *(name for name, there in parts.items() if there)]
    for line in _lines(config):
        plan += [f"policy: {line.label}", *([] if task is None else ["evaluation and diagnosis"])]
    return [*plan, "report"]


def _measured(config: TrainConfig, task: Task) -> dict[str, Any]:
    """Where returns are measured, so that it is found again from any folder."""
    name = task_name(config, task)
    return {"task": name, "environment": task.env_id, "module_file": module_file(name)}


def task_name(config: TrainConfig, task: Task) -> str:
    """With its module, where the user's own has one: `task_in_file` knows it again."""
    return config.task or task.name


def results_of(run: Run) -> dict[str, Any]:
    """The table as plain data."""
    scores = None if run.task is None else run.task.scores
    return {
        "dataset": run.config.dataset,
        "data_return": run.data_return,
        "seeds": seeds_of(run.config),
        "algorithms": {
            outcome.name: None
            if outcome.returns is None
            else {
                "returns": list(outcome.returns),
                "mean": float(np.mean(outcome.returns)),
                "std": float(np.std(outcome.returns, ddof=1)) if len(outcome.returns) > 1 else None,
                "score": None if scores is None else float(scores.normalize(np.mean(outcome.returns))),
                "diagnosis": outcome.diagnosis,
            }
            for outcome in run.outcomes
        },
    }


def _facts(config: TrainConfig, line: Baseline, log: Transitions) -> dict[str, Any]:
    """What services of metrics show beside a run."""
    said = {"algorithm": line.label, "dataset": config.dataset, "data_checksum": log.checksum}
    return {**said, "preset": config.preset, "seed": config.seed, "seeds": config.seeds}


def _lines(config: TrainConfig) -> list[Baseline]:
    """What is trained, the run's own algorithm last."""
    return [*config.baselines, Baseline(label=config.label, algorithm=config.algorithm)]


def seeds_of(config: TrainConfig) -> list[int]:
    """The seeds of a run."""
    return list(range(config.seed, config.seed + config.seeds))


def _save(folder: Path, agent: Agent, config: TrainConfig, task: Task | None, checksum: str) -> None:
    for seed, policy in zip(seeds_of(config), agent.policies, strict=True):
        about = {
            **policy.about,
            "task": None if task is None else task_name(config, task),
            "dataset": config.dataset,
            "algorithm": config.label,
            "preset": config.preset,
            "seed": seed,
            "updates": config.algorithm.updates,
            "data_checksum": checksum,  # of the whole log, of which a part was held out
            "saved": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        replace(policy, about=about).save(folder / "policy" / f"seed-{seed}")

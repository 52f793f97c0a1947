"""The main job, end to end: data → models → calibration → policy → evaluation → run folder.

Every stage is a `fit` with a folder of its own inside the run, so a run that was stopped goes on by doing the
same again: finished stages are read back, the unfinished one continues from its newest checkpoint, bit for
bit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mcetm.agents.policy import save_policy
from mcetm.data.transitions import Transitions
from mcetm.envs import load_dataset
from mcetm.errors import UserError
from mcetm.files import write_json
from mcetm.nn.actor import Actor
from mcetm.nn.members import take_members
from mcetm.pipeline.algorithms import ALGORITHMS, Needs
from mcetm.pipeline.config import Algo, PolicyConfig, TrainConfig, read_config, to_plain
from mcetm.pipeline.diagnosis import diagnose
from mcetm.pipeline.environment import describe_environment
from mcetm.pipeline.folder import compared_folder
from mcetm.pipeline.models import Models, train_models
from mcetm.pipeline.policy import mean_returns, train_policies, without_safety
from mcetm.pipeline.stages import Stages
from mcetm.report.page import write_report
from mcetm.tasks.own import task_in_file
from mcetm.tasks.registry import Task, get_task


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


def start_run(config: TrainConfig, folder: Path) -> None:
    """Make the folder of a new run; a folder that holds another run is refused."""
    path = folder / "config.json"
    if path.exists():
        if to_plain(read_config(path)) != to_plain(config):
            raise UserError(
                f"{folder} holds a run with other settings; choose another --out, or --resume it."
            )
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not empty and not a run; choose another --out.")
    write_json(path, to_plain(config))


def read_log(config: TrainConfig, *, infos: bool = False) -> Transitions:
    """The dataset of a run, which must have actions and rewards."""
    if config.task is not None:
        task_in_file(config.task, "config.json")  # where the settings may come from
    log = load_dataset(config.dataset, task=config.task, infos=infos)
    log.require("reward", "action")
    return log


def run_training(folder: Path, config: TrainConfig, log: Transitions | None = None) -> Run:
    """Do all that the configuration says and the folder does not hold yet; `log` if it is already read."""
    log = read_log(config) if log is None else log
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    environment = {**describe_environment(), "dataset_checksum": log.checksum}
    write_json(folder / "environment.json", environment)
    train, holdout = log.split(config.holdout, seed=config.seed)
    lines, stages = _lines(config), Stages(folder / "seconds.json")
    models = None
    needs: set[Needs] = {ALGORITHMS[algo].needs for _, algo, _ in lines}
    if needs != {"log"}:
        models = train_models(
            train,
            holdout,
            config.models,
            task,
            needs=needs,
            key=jax.random.key(config.seed),
            folder=folder / "models",
            earlier=earlier_models(config),
            stages=stages,
        )
    outcomes = []
    for name, algo, policy in lines:
        own = name == lines[-1][0]
        place = folder if own else compared_folder(folder, name)
        world = None
        if models is not None and ALGORITHMS[algo].needs != "log":
            world = models.world(algo, policy)
        with stages.stage(f"policy: {name}"):
            trained = train_policies(
                train,
                world,
                algo,
                policy,
                action_bounds(train),
                task,
                seeds=seeds_of(config),
                folder=place,
                label=name,
            )
        if own:
            _save(folder, trained.actors, config, task)
        found = diagnosis = None
        if task is not None:
            with stages.stage("evaluation and diagnosis"):
                found = tuple(mean_returns(trained.actors, task, config.policy.episodes, config.seeds))
                if trained.learner is not None:
                    episodes = config.policy.episodes
                    diagnosis = diagnose(trained.learner, trained.worlds, task, holdout, episodes=episodes)
                    diagnosis["q"] = [value / trained.reward_scale for value in diagnosis["q"]]
        outcomes.append(Outcome(name, found, trained.history, diagnosis))
    run = Run(folder, config, float(log.episode_returns.mean()), tuple(outcomes), models, task)
    results = results_of(run)
    write_json(folder / "results.json", results)
    with stages.stage("report"):
        write_report(
            folder,
            title=f"{lines[-1][0]} on {config.dataset}",
            results=results,
            histories={outcome.name: outcome.history for outcome in outcomes},
            energies=None if models is None else models.held_out,
            thresholds=None if models is None else models.deltas,
            config=to_plain(config),
            environment=environment,
        )
    return run


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


def _lines(config: TrainConfig) -> list[tuple[str, Algo, PolicyConfig]]:
    """What is trained, the run's own algorithm last."""
    own = (ALGORITHMS[config.algo].label, config.algo, config.policy)
    if not config.compare:
        return [own]
    rivals: list[tuple[str, Algo, PolicyConfig]] = [
        ("behaviour cloning", "bc", config.policy),
        ("MOBILE", "mobile", config.policy),
        ("MC-ETM without truncation and penalty", "mcetm", without_safety(config.policy)),
    ]
    return [*(line for line in rivals if line[0] != own[0]), own]


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


def seeds_of(config: TrainConfig) -> list[int]:
    """The seeds of a run."""
    return list(range(config.seed, config.seed + config.seeds))


def action_bounds(log: Transitions) -> tuple[Any, Any]:
    """Action bounds of the log, or of its actions where it does not say."""
    seen_low, seen_high = log.action.min(axis=0), log.action.max(axis=0)
    low = seen_low if log.metadata.action_low is None else np.asarray(log.metadata.action_low)
    high = seen_high if log.metadata.action_high is None else np.asarray(log.metadata.action_high)
    low, high = np.where(np.isfinite(low), low, seen_low), np.where(np.isfinite(high), high, seen_high)
    # An action that never varies still needs some room for the policy's tanh.
    room = np.where(high - low < 1e-6, 1e-3, 0.0)
    return jnp.asarray(low - room, jnp.float32), jnp.asarray(high + room, jnp.float32)


def _save(folder: Path, actors: Actor, config: TrainConfig, task: Task | None) -> None:
    for i, seed in enumerate(seeds_of(config)):
        about = {
            # With its module, where the user's own has one: `task_in_file` knows it again.
            "task": None if task is None else config.task or task.name,
            "dataset": config.dataset,
            "algorithm": config.algo,
            "preset": config.preset,
            "seed": seed,
            "updates": ALGORITHMS[config.algo].settings(config.policy).steps,
            "saved": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        save_policy(folder / "policy" / f"seed-{seed}", take_members(actors, i), about)

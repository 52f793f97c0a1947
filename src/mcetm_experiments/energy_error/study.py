"""The energy-error study: does a score of distrust know where the model errs, on and off the data?

The paper says so of MC-ETM's energy on halfcheetah (r = 0.79, one noise of unstated size). Here every score
that an algorithm of this library relies on is compared with true errors on a ladder that leads off the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from mcetm import UserError
from mcetm.console import progress
from mcetm.data import Transitions
from mcetm.dynamics import MODELS, REFINE, EnergyTransitionModel, InferenceSettings, calibrate, fit_support
from mcetm.envs import collect_recipe, load_dataset
from mcetm.files import write_json
from mcetm.nn import take_members
from mcetm.pipeline import Finished, describe_environment, plain_of, read_finished, seeds_of
from mcetm.tasks import RECIPES, Task, get_task
from mcetm_experiments.energy_error.distrust import SCORES, Subject, look_at
from mcetm_experiments.energy_error.figures import draw_ladder, draw_scores
from mcetm_experiments.energy_error.ladder import rungs
from mcetm_experiments.energy_error.presets import (
    PRESET_TASKS,
    PRESETS,
    EnergyErrorConfig,
    with_energy,
)
from mcetm_experiments.energy_error.reliability import COVERAGES, RATES, measure, shown_rows
from mcetm_experiments.energy_error.settings import EnergyErrorStudy
from mcetm_experiments.energy_error.tables import write_tables
from mcetm_experiments.energy_error.value import evaluate_behaviour
from mcetm_experiments.shared.baselines import Baselines, BaselinesConfig, clocked, prolonged
from mcetm_experiments.shared.keeping import kept
from mcetm_experiments.shared.locomotion import LEVELS, TASKS
from mcetm_experiments.shared.models import ModelsConfig
from mcetm_experiments.shared.summary import over_seeds


@dataclass(frozen=True)
class _Parts:
    """What one seed is about."""

    train: Transitions
    known: Transitions
    """Held-out rows that set thresholds."""
    test: Transitions
    subject: Subject
    seconds: dict[str, float] = field(default_factory=dict)
    """Of training without compilation: the energy with its anchor and support, and the longer ensemble."""


@dataclass(frozen=True)
class _Job:
    """One log with all that is looked at on it: a piece for each seed."""

    dataset: str
    task: Task
    config: EnergyErrorConfig
    setting: dict[str, Any]
    seeds: list[int]
    parts: Callable[[int], _Parts]
    """Of a seed."""


def run_energy_error(
    settings: EnergyErrorStudy, config: Callable[[str], EnergyErrorConfig] | None = None
) -> dict[str, Any]:
    """Train, look at every rung, write `results.json`, `tables.md` and the figures.

    Finished pieces, one for each task and seed, are kept in `out/pieces`; a stopped study goes on after them,
    and with a folder `trained` in the middle of a training.
    """
    _check(settings)
    out, make = settings.out, config or PRESETS[settings.preset]
    if settings.run_folder is not None:
        jobs: Iterator[_Job] = iter([_job_of_run(settings.run_folder, make)])
        total = 1
    else:
        chosen = settings.tasks or PRESET_TASKS[settings.preset]
        jobs = (_job(f"{task}-{settings.level}", make, settings) for task in chosen)
        total = len(chosen)
    found: dict[str, Any] = {}
    with progress("energy-error study", total, unit="tasks") as advance:
        for job in jobs:
            pieces = [
                kept(
                    out / "pieces" / f"{job.dataset}-{s}.json",
                    job.setting,
                    lambda job=job, s=s: _piece(job, s),
                )
                for s in job.seeds
            ]
            found[job.dataset] = {"setting": job.setting, **_summary(pieces)}
            scores = {name: model for name, model in SCORES.items() if name in pieces[0]["scores"]}
            draw_scores(out / f"energy-error-{job.task.name}", pieces[0], scores)
            advance(1)
    results = {
        "study": "energy-error",
        "preset": settings.preset,
        "seed": settings.seed,
        "environment": describe_environment(),
        "coverages": COVERAGES,
        "rates": RATES,
        "datasets": found,
    }
    results = _without_nan(results)
    draw_ladder(out / "energy-error", results, SCORES)
    write_tables(out / "tables.md", results)
    write_json(out / "results.json", results)
    return results


def _check(settings: EnergyErrorStudy) -> None:
    """Refuse what cannot be run before anything starts."""
    tasks, energy, members, seeds = settings.tasks, settings.energy, settings.members, settings.seeds
    if seeds is not None and seeds < 1:
        raise UserError(f"The energy-error study needs at least 1 seed, not {seeds}.")
    if members is not None and members < 1:
        raise UserError(f"An ensemble needs at least 1 energy, not {members}.")
    if settings.run_folder is not None and (tasks, energy, members, seeds) != ((), None, None, None):
        raise UserError(
            "A run brings its own task, energies and seeds; leave out --tasks, --energy, --members, --seeds."
        )
    for task in tasks or PRESET_TASKS[settings.preset]:
        if settings.run_folder is None and f"{task}-{settings.level}" not in RECIPES:
            raise UserError(f"There is no level '{settings.level}' of {task}; there are {', '.join(LEVELS)}.")


def _job(dataset: str, make: Callable[[str], EnergyErrorConfig], settings: EnergyErrorStudy) -> _Job:
    """What is looked at on a named dataset, with models that are trained for it."""
    config = make(dataset)
    if settings.energy is not None:
        small = settings.preset == "quick"
        config = replace(config, models=with_energy(config.models, settings.energy, small=small))
    if settings.members is not None:
        energies = replace(config.models.energy, members=settings.members)
        config = replace(config, models=replace(config.models, energy=energies))
    config = replace(config, seeds=config.seeds if settings.seeds is None else settings.seeds)
    recipe = RECIPES[dataset]
    if config.transitions is None:
        log = load_dataset(dataset, infos=True).with_next
    else:
        log = collect_recipe(recipe, steps=config.transitions)
    task = get_task(recipe.task)
    # Of a piece nothing depends on how many seeds there are.
    setting = {
        "config": {**asdict(config), "seeds": None},
        "baseline": asdict(prolonged(config.models.gaussian, config.longer)),
        "data": log.checksum,
    }

    def parts(s: int) -> _Parts:
        train, holdout = log.split(config.holdout, seed=s)
        known, test = holdout.split(0.5, seed=s)
        return _Parts(train, known, test, *_train(train, known, task, config, s, settings.trained))

    seeds = range(settings.seed, settings.seed + config.seeds)
    return _Job(dataset, task, config, setting, [*seeds], parts)


def baselines_of(
    train: Transitions,
    known: Transitions,
    config: EnergyErrorConfig,
    seed: int,
    folder: Path | None = None,
    validate: Callable[[EnergyTransitionModel], dict[str, Array]] | None = None,
) -> Baselines:
    """The transition models of one seed, trained when they are asked for."""
    models, kind = config.models, config.models.energy.kind
    inference = models.inference or (REFINE if kind == "anchored" else InferenceSettings())
    chosen: dict[str, Any] = {kind: models.energy, f"{kind}_inference": inference}
    chosen |= {"gaussian": models.gaussian, "autoencoder": models.autoencoder, "longer": config.longer}
    key = _keys(seed)[0]
    return Baselines(train, known, BaselinesConfig(**chosen), key=key, folder=folder, validate=validate)


def _keys(seed: int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """For training and for calibration."""
    training, calibration = jax.random.split(jax.random.key(seed))
    return training, calibration


def _train(
    train: Transitions,
    known: Transitions,
    task: Task,
    config: EnergyErrorConfig,
    s: int,
    folder: Path | None,
) -> tuple[Subject, dict[str, float]]:
    """Everything that scores are made of, on one log, and what it cost."""
    models, trained = config.models, baselines_of(train, known, config, s, folder)
    train_key, calibration_key = _keys(s)
    found = getattr(trained, models.energy.kind)
    energy, seconds = found.model, found.seconds
    if models.support is not None:
        wanted = models.support
        home, support_key = trained.home("support", wanted), jax.random.fold_in(train_key, 0)
        support = clocked(lambda: fit_support(train, known, wanted, key=support_key, folder=home))
        energy, seconds = replace(energy, support=support.model), seconds + support.seconds
    low, high = (jnp.asarray(bound, jnp.float32) for bound in (task.action_low, task.action_high))
    subject = Subject.of(
        train,
        config.neighbours,
        seed=s,
        energy=energy,
        threshold=calibrate(energy, known, models.calibration, key=calibration_key),
        regressor=trained.longer.model,
        valuer=evaluate_behaviour(train, low, high, config.value, seed=s),
        count=config.samples,
    )
    return subject, {"MC-ETM": seconds, "Gaussian ensemble": trained.longer.seconds}


def _job_of_run(folder: Path, make: Callable[[str], EnergyErrorConfig]) -> _Job:
    """A finished run's own models; its seeds are policies and critics in the same model."""
    run = read_finished(folder)
    if run.task is None or run.task.name not in TASKS or not {"qpos", "qvel"} <= set(run.train.infos):
        raise UserError(
            f"{folder} was trained on {run.config.dataset}; the energy-error study needs hopper, walker2d or "
            "halfcheetah with the simulator's states (qpos and qvel) in the data."
        )
    if type(run.config.model) not in MODELS:
        raise UserError(
            f"{folder} has a model of your own; the energy-error study looks at those of the library."
        )
    dataset = run.config.dataset.removesuffix("-v2")
    dataset = dataset if dataset in RECIPES else Path(dataset).stem
    algorithm: Any = run.config.algorithm
    config = replace(make(dataset), models=ModelsConfig.of(run.config), samples=algorithm.samples)
    setting = {
        "config": {**asdict(config), "seeds": None},
        "run": plain_of(run.config),
        "data": [run.train.checksum, run.holdout.checksum],
    }
    return _Job(dataset, run.task, config, setting, seeds_of(run.config), _parts_of(run, config))


def _parts_of(run: Finished, config: EnergyErrorConfig) -> Callable[[int], _Parts]:
    model: Any = run.models.world.model
    trust = run.models.world.trust
    assert trust is not None  # noqa: S101 (a run calibrates one)

    def parts(s: int) -> _Parts:
        known, test = run.holdout.split(0.5, seed=s)
        subject = Subject.of(
            run.train,
            config.neighbours,
            seed=s,
            energy=model,
            threshold=trust.next_state,
            regressor=model.regressor,
            valuer=take_members(run.agent.learner, s - run.config.seed),
            count=config.samples,
        )
        return _Parts(run.train, known, test, subject)

    return parts


def _piece(job: _Job, s: int) -> dict[str, Any]:
    """All numbers of one seed, and rows for the figure."""
    began, config = time.perf_counter(), job.config
    parts = job.parts(s)
    subject, known, trained = parts.subject, parts.known, time.perf_counter()
    ladder = list(
        rungs(
            job.task,
            parts.train,
            parts.test,
            subject,
            dataset=job.dataset,
            rows=config.rows,
            batch_size=config.batch_size,
            seed=s,
        )
    )
    rung = np.repeat(np.arange(len(ladder)), [len(step) for step in ladder])
    columns = [np.concatenate([getattr(step, n) for step in ladder]) for n in ("obs", "action", "next_obs")]
    beside = [i for i, r in enumerate(ladder) if r.beside]
    keys = jax.random.split(jax.random.key(1000 + s))
    size = config.batch_size
    looks = look_at(subject, *columns, batch_size=size, key=keys[0])
    chosen = np.random.default_rng(s).permutation(len(known))[: config.rows]
    rows = (known.obs[chosen], known.action[chosen], known.next_obs[chosen])
    reference = look_at(subject, *rows, batch_size=size, key=keys[1])
    return {
        "rungs": [
            {"family": r.family, "strength": r.strength, "name": r.name, "beside": r.beside} for r in ladder
        ],
        "seconds": {
            "training": trained - began,
            "looking": time.perf_counter() - trained,
            "of": parts.seconds,
        },
        **measure(looks, rung, len(ladder), reference, rate=config.rate, beside=beside),
        "nominal": 1.0 - config.models.calibration.quantile,
        "shown": shown_rows(looks, rung, config.shown, seed=s),
    }


def _summary(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread over seeds of every number."""

    def gathered(*path: str) -> dict[str, Any]:
        parts = pieces
        for name in path:
            parts = [part[name] for part in parts]
        return over_seeds({name: np.stack([part[name] for part in parts], axis=-1) for name in parts[0]})

    by_rung = ("pearson", "spearman", "auroc", "rejected", "risk", "false alarms")
    scores = {}
    for name in pieces[0]["scores"]:
        flat = {m: np.stack([piece["scores"][name][m] for piece in pieces], axis=-1) for m in by_rung}
        scores[name] = {**over_seeds(flat), "pooled": gathered("scores", name, "pooled")}
    return {
        "rungs": pieces[0]["rungs"],
        "seconds": [piece["seconds"] for piece in pieces],
        "rows": over_seeds({"rows": np.stack([piece["rows"] for piece in pieces], axis=-1)})["rows"],
        "errors": gathered("errors"),
        "expected": gathered("expected"),
        "truncated": {"nominal": pieces[0]["nominal"], **gathered("truncated")},
        "scores": scores,
    }


def _without_nan(content: Any) -> Any:
    """NaN, which JSON does not have, as null."""
    if isinstance(content, dict):
        return {name: _without_nan(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and np.isnan(content) else content

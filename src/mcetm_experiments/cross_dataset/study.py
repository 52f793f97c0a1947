"""The cross-dataset study: one-step errors of every model on every level of a task (the paper's appendix).

Trained on one level, tested on all: on its own level it shows accuracy, on the others what a model makes of
states and actions that it has hardly seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import jax
from jaxtyping import Array, PRNGKeyArray

from mcetm.console import progress
from mcetm.data import Transitions
from mcetm.dynamics import Langevin
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm_experiments.cross_dataset.figures import draw_curves, draw_rows
from mcetm_experiments.cross_dataset.onestep import STAGES, STARTS, LevelRows, with_steps
from mcetm_experiments.cross_dataset.published import PUBLISHED, PUBLISHED_MODELS
from mcetm_experiments.cross_dataset.settings import CrossDatasetStudy
from mcetm_experiments.shared.baselines import Baselines, BaselinesConfig, baseline, point
from mcetm_experiments.shared.keeping import kept, lookup
from mcetm_experiments.shared.locomotion import (
    BASELINES,
    LEVELS,
    MODELS,
    TASKS,
    Logs,
    baselines_on,
    setting,
    thinned,
)
from mcetm_experiments.shared.settings import Level, Model, TaskName


@dataclass(frozen=True)
class CrossConfig:
    """How much is trained and tested."""

    baselines: dict[str, BaselinesConfig]
    """By task."""
    logs: Logs
    """Where logs come from, and how many rows they have."""
    tests: tuple[Level, ...] = LEVELS
    """Levels that every model is tested on."""
    rows: int = 10_000
    """Test rows of each level."""
    studied: Level = "medium"
    """The level on which the length of chains and the amount of data are varied."""
    lengths: tuple[int, ...] = (0, 4, 8, 16, 32, 64, 128)
    """Langevin steps of a prediction, all stages together."""
    chain: Langevin = field(default_factory=Langevin)
    """How those chains move: by falling steps, as the paper's constant 1e-3 leads nowhere from noise."""
    shares: tuple[float, ...] = (0.01, 0.1)
    """Of the training rows; all of them are in the table already."""


PRESETS = {
    "quick": lambda: CrossConfig(
        {task: BASELINES["quick"](task) for task in TASKS},
        Logs(20_000),
        tests=("random", "medium"),
        rows=1000,
        lengths=(0, 4, 16, 64),
    ),
    "fast": lambda: CrossConfig({task: BASELINES["fast"](task) for task in TASKS}, Logs(1_000_000)),
    "paper": lambda: CrossConfig({task: BASELINES["paper"](task) for task in TASKS}, Logs(2_000_000)),
}
NOW: dict[str, tuple[tuple[TaskName, ...], tuple[Level, ...]]] = {
    "quick": (("hopper",), ("random", "medium")),
    "fast": (TASKS, LEVELS),
    "paper": (TASKS, LEVELS),
}
"""Tasks and levels that a preset runs if it is not told which."""


class _Task:
    """One task of the study: its logs are loaded when something has to be trained."""

    def __init__(
        self, task: TaskName, config: CrossConfig, out: Path, seed: int, trained: Path | None
    ) -> None:
        self.task, self.config, self.out, self.seed, self.trained = task, config, out, seed, trained
        self._logs: dict[str, tuple[Transitions, Transitions]] = {}
        self._baselines: dict[tuple[str, float], tuple[Baselines, LevelRows, str]] = {}

    def setting(self, level: str, **more: Any) -> dict[str, Any]:
        """What a part depends on."""
        return setting(self.config, self.task, level, self.seed, **more)

    def part(self, kind: str, level: str, *names: str) -> Path:
        return self.out / kind / f"{'-'.join([self.task, level, *names])}.json"

    def row(self, level: str, model: str) -> tuple[Path, dict[str, Any]]:
        return self.part("rows", level, model), self.setting(level)

    def share(self, share: float, model: str) -> tuple[Path, dict[str, Any]]:
        level = self.config.studied
        return self.part("shares", level, f"{share:g}", model), self.setting(level, share=share)

    def chains(self) -> tuple[Path, dict[str, Any]]:
        return self.part("chains", self.config.studied), self.setting(self.config.studied)

    def measure(self, level: str, model: str, share: float = 1.0) -> dict[str, Any]:
        """Errors of one model, trained on (a share of) one level, on every level."""
        baselines, tests, checksum = self._prepare(level, share)
        found = baseline(baselines, model)
        return {
            "tests": tests.errors(found.predict, key=jax.random.key(self.seed)),
            "seconds": found.seconds,
            "transitions": len(baselines.train) + len(baselines.holdout),
            "data": checksum,
        }

    def unchanged(self, level: str) -> dict[str, Any]:
        """Errors of saying that nothing changes: what all others are measured against."""
        return {"tests": self._prepare(level, 1.0)[1].errors(_stay, key=jax.random.key(self.seed))}

    def measure_chains(self) -> dict[str, Any]:
        """Errors of MC-ETM's predictions after ever more Langevin steps, by start and stages."""
        baselines, tests, _ = self._prepare(self.config.studied, 1.0)
        model, curves = baselines.plain.model, {}
        for start in STARTS:
            for stages in STAGES:
                curves[f"{start}, {stages}"] = [
                    tests.errors(
                        point(with_steps(model, start, stages, steps, self.config.chain)),
                        key=jax.random.key(self.seed),
                    )
                    for steps in self.config.lengths
                ]
        return curves

    def _prepare(self, level: str, share: float) -> tuple[Baselines, LevelRows, str]:
        """Models to be trained, and the tests of what they learn; those of one log at a time are kept."""
        if (level, share) not in self._baselines:
            train, _ = self._divided(level)
            tests = {name: self._divided(name)[1] for name in self.config.tests}
            subset = thinned(train, max(20, round(share * len(train))), seed=self.seed)
            models = self.config.baselines[self.task]
            baselines = baselines_on(subset, level, models, seed=self.seed, folder=self.trained)
            found = LevelRows.of(tests, train, self.config.rows, seed=self.seed)
            self._baselines = {(level, share): (baselines, found, subset.checksum)}
        return self._baselines[level, share]

    def _divided(self, level: str) -> tuple[Transitions, Transitions]:
        if level not in self._logs:
            logs = self.config.logs
            self._logs[level] = logs.divide(logs.load(self.task, level, self.out / "data"))
        return self._logs[level]


def _stay(obs: Array, action: Array, key: PRNGKeyArray) -> Array:
    return obs


def run_cross_dataset(settings: CrossDatasetStudy, config: CrossConfig | None = None) -> dict[str, Any]:
    """Train and test what is chosen, add it to what earlier runs left, write `results.json` and two figures.

    Finished parts are kept in `out`; the results hold all that were made with the same settings. With a
    folder `trained`, trainings are kept there and go on where they were stopped.
    """
    out, seed, preset = settings.out, settings.seed, settings.preset
    config = config or PRESETS[preset]()
    config = replace(config, logs=replace(config.logs, source=settings.source, seed=seed))
    now = (
        settings.tasks or NOW[preset][0],
        settings.levels or NOW[preset][1],
        settings.models or get_args(Model),
    )
    studies = {task: _Task(task, config, out, seed, settings.trained) for task in TASKS}
    with progress(
        "cross-dataset study", len(now[0]) * len(now[1]) * (len(now[2]) + 1), unit="rows"
    ) as advance:
        for task in now[0]:
            for level in now[1]:
                _run_level(studies[task], level, now[2], advance)
    results = {
        "study": "cross-dataset",
        "preset": preset,
        "config": asdict(config),
        "seed": seed,
        "environment": describe_environment(),
        "models": MODELS,
        "tests": config.tests,
        "rows": [row for study in studies.values() for row in _rows(study)],
        "chains": {task: found for task, study in studies.items() if (found := lookup(*study.chains()))},
        "lengths": config.lengths,
        "shares": {task: found for task, study in studies.items() if (found := _shares(study))},
        "studied": config.studied,
    }
    draw_rows(out / "cross-dataset", results)
    draw_curves(out / "cross-dataset-curves", results)
    write_json(out / "results.json", results)
    return results


def _run_level(study: _Task, level: Level, models: Sequence[Model], advance: Any) -> None:
    """Everything that is trained on one level, so that its log and its models are made once."""
    kept(study.part("rows", level, "unchanged"), study.setting(level), lambda: study.unchanged(level))
    for model in models:
        kept(*study.row(level, model), lambda model=model: study.measure(level, model))
        advance(1)
    if level == study.config.studied:
        if "plain" in models:
            kept(*study.chains(), study.measure_chains)
        for share in study.config.shares:
            for model in models:
                make = lambda share=share, model=model: study.measure(level, model, share)  # noqa: E731
                kept(*study.share(share, model), make)
    advance(1)


def _rows(study: _Task) -> list[dict[str, Any]]:
    """The table's rows of a task: the paper's errors, and ours where they have been measured."""
    rows = []
    for level in LEVELS:
        parts = {model: lookup(*study.row(level, model)) for model in MODELS}
        still = lookup(study.part("rows", level, "unchanged"), study.setting(level))
        for test in LEVELS:
            at = lambda part, test=test: None if part is None else part["tests"].get(test)  # noqa: E731
            rows.append(
                {
                    "task": study.task,
                    "train": level,
                    "test": test,
                    "paper": dict(zip(PUBLISHED_MODELS, PUBLISHED[study.task, level, test], strict=True)),
                    "unchanged": at(still),
                    "models": {model: at(part) for model, part in parts.items()},
                    "seconds": {model: part and part["seconds"] for model, part in parts.items()},
                }
            )
    return rows


def _shares(study: _Task) -> dict[str, list[dict[str, Any] | None]]:
    """By model the errors for ever more data, all of it last; None where a share has not been run."""
    level, found = study.config.studied, {}
    for model in MODELS:
        parts = [lookup(*study.share(share, model)) for share in study.config.shares]
        if any(parts):
            parts.append(lookup(*study.row(level, model)))
            found[model] = [part and {key: part[key] for key in ("transitions", "tests")} for part in parts]
    return found

"""The rollouts study: models fed with their own predictions and the data's actions (the last figure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm import UserError
from mcetm.console import progress
from mcetm.data import Statistics, Transitions
from mcetm.dynamics import Tube
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm_experiments.rollouts.figures import draw_rollouts
from mcetm_experiments.rollouts.film import FilmConfig, write_film
from mcetm_experiments.rollouts.predictions import CONFINED, PREDICTIONS
from mcetm_experiments.rollouts.settings import RolloutsStudy
from mcetm_experiments.shared.baselines import Baselines, BaselinesConfig, Draw, baseline
from mcetm_experiments.shared.keeping import kept, lookup
from mcetm_experiments.shared.locomotion import (
    BASELINES,
    MODELS,
    TASKS,
    Logs,
    baselines_on,
    setting,
)
from mcetm_experiments.shared.openloop import Windows, open_loop
from mcetm_experiments.shared.settings import Level, Model, TaskName

HORIZONS = (1, 5, 10, 25, 50, 100, 200)
QUANTILES = (0.1, 0.5, 0.9)
"""Over starts; half of the starts err by less than the middle one."""
_CONFINABLE = ("gaussian", "longer", "anchored")
"""Models whose predictions are also confined to a tube around the manifold."""
_GUARD = 100.0


@dataclass(frozen=True)
class RolloutsConfig:
    """How much is trained and followed."""

    baselines: dict[str, BaselinesConfig]
    """By task."""
    logs: Logs
    """Where logs come from, and how many rows they have."""
    horizon: int = 200
    """Steps of a rollout."""
    starts: int = 500
    """Windows of held-out episodes, at random; they may overlap."""
    samples: int = 10
    """Of every member, among MC-ETM's candidates for low-energy selection."""
    tube: float = 0.999
    """Share of the held-out states that the tube around the manifold holds."""
    film: FilmConfig = field(default_factory=FilmConfig)
    """What the films show."""


PRESETS = {
    "quick": lambda: RolloutsConfig(
        {task: BASELINES["quick"](task) for task in TASKS}, Logs(20_000, holdout=0.2), starts=40, samples=4
    ),
    "fast": lambda: RolloutsConfig({task: BASELINES["fast"](task) for task in TASKS}, Logs(1_000_000)),
    "paper": lambda: RolloutsConfig({task: BASELINES["paper"](task) for task in TASKS}, Logs(2_000_000)),
}
NOW: dict[str, tuple[TaskName, ...]] = {"quick": ("hopper",), "fast": TASKS, "paper": TASKS}


def guarded(state: Array) -> Array:
    """A state within ±100, where tasks draw the line of health too: what has diverged stays a number."""
    return jnp.clip(jnp.nan_to_num(state, nan=_GUARD), -_GUARD, _GUARD)


def curves(
    predicted: Float[np.ndarray, "windows horizon obs"],
    ground_truth: Float[np.ndarray, "windows horizon obs"],
    spread: Float[np.ndarray, " obs"],
) -> dict[str, Float[np.ndarray, "quantiles horizon"]]:
    """Quantiles over windows of the mean absolute error after each step, raw and in spreads of the states."""
    error = np.abs(predicted.astype(np.float64) - ground_truth)
    measures = {"raw": error.mean(axis=-1), "normalised": (error / spread).mean(axis=-1)}
    return {name: np.quantile(values, QUANTILES, axis=0) for name, values in measures.items()}


def _confined(
    confine: Callable[[Array], Array], draw: Draw, obs: Array, action: Array, key: PRNGKeyArray
) -> Array:
    return confine(draw(obs, action, key))


class _Task:
    """One task of the study: its log is loaded when something has to be trained."""

    def __init__(
        self,
        task: TaskName,
        level: Level,
        config: RolloutsConfig,
        out: Path,
        seed: int,
        trained: Path | None,
    ) -> None:
        self.task, self.level, self.config, self.out, self.seed = task, level, config, out, seed
        self.trained = trained
        self._prepared: tuple[Baselines, Windows, np.ndarray] | None = None

    def part(self, model: str) -> tuple[Path, dict[str, Any]]:
        """Where a model's curves are kept, and what they depend on."""
        path = self.out / "models" / f"{self.task}-{self.level}-{model}.json"
        # A file from before there was a new kind of prediction lacks it, and is made anew.
        return path, setting(self.config, self.task, self.level, self.seed, predictions=[*PREDICTIONS])

    def measure(self, model: str) -> dict[str, Any]:
        """A model's curves: of point predictions, samples, members, selection, confined ones."""
        baselines = self._prepare()[0]
        found = baseline(baselines, model)
        draws = {"point": found.predict}
        if model != "mlp":  # whose spread means nothing
            draws["sampled"] = found.sample
        if found.selected is not None and model != "standard":
            draws["selected"] = found.selected(self.config.samples)
        if model in _CONFINABLE:
            tube = Tube.of(baselines.autoencoder.model, baselines.holdout, quantile=self.config.tube)
            free = {kind: draws[other] for kind, other in CONFINED.items() if other in draws}
            draws |= {kind: eqx.Partial(_confined, tube, draw) for kind, draw in free.items()}
        kinds = {kind: self._roll(draw) for kind, draw in draws.items()}
        members = [self._roll(member)["normalised"][1] for member in found.members]
        return {"predictions": kinds, "members": members, "seconds": found.seconds}

    def still(self) -> dict[str, Any]:
        """Curves of a state that never changes, and the film of the ground truth."""
        _, windows, _ = self._prepare()
        found = self._roll(lambda obs, action, key: obs)
        return {
            "predictions": {"point": found},
            "ground truth": self._scene(windows, np.asarray(windows.ground_truth)),
        }

    def _roll(self, draw: Draw) -> dict[str, Any]:
        _, windows, spread = self._prepare()
        found = open_loop(draw, project=guarded)(windows, jax.random.key(self.seed))
        film = self._scene(windows, found)
        return {**curves(found[1:], np.asarray(windows.ground_truth)[1:], spread), "film": film}

    def _scene(self, windows: Windows, states: np.ndarray) -> np.ndarray:
        """The states of the film, the first one included."""
        return np.concatenate([np.asarray(windows.start)[:1], states[0, : self.config.film.steps]])

    def _prepare(self) -> tuple[Baselines, Windows, np.ndarray]:
        """Models to be trained, windows (first the one that is filmed), and the spread of the states."""
        if self._prepared is None:
            logs = self.config.logs
            train, test = logs.divide(logs.load(self.task, self.level, self.out / "data"))
            models = self.config.baselines[self.task]
            baselines = baselines_on(train, self.level, models, seed=self.seed, folder=self.trained)
            horizon = self.config.horizon
            tested = some_windows(test, horizon, self.config.starts, seed=self.seed)
            # One array for both: a program of its own for the film would take as long to compile as the rest.
            join = lambda *parts: jnp.concatenate(parts)  # noqa: E731
            windows = jax.tree_util.tree_map(join, last_scene(test, horizon), tested)
            self._prepared = baselines, windows, Statistics.of(test).obs.std
        return self._prepared


def some_windows(test: Transitions, horizon: int, count: int, *, seed: int) -> Windows:
    """Windows at random from whole episodes that are long enough."""
    if test.episode_lengths.max() < horizon:
        raise UserError(
            f"No held-out episode of {test.metadata.source} has {horizon} steps; the longest has "
            f"{test.episode_lengths.max()}."
        )
    windows = Windows.of(test, horizon)
    total = windows.start.shape[0]
    picked = np.sort(np.random.default_rng(seed).permutation(total)[:count])
    return jax.tree_util.tree_map(lambda leaf: leaf[picked], windows)


def last_scene(test: Transitions, horizon: int) -> Windows:
    """The beginning of the last episode that is long enough: of mixed logs, one by their best policy."""
    long = np.flatnonzero(test.episode_lengths >= horizon)
    return Windows.of(test.select_episodes(long[-1:]).head(horizon), horizon)


def run_rollouts(settings: RolloutsStudy, config: RolloutsConfig | None = None) -> dict[str, Any]:
    """Train and follow what is chosen, add it to what earlier runs left, write `results.json`, curves, films.

    What was measured is kept in `out/models`; the results hold all of it that has the same settings. With a
    folder `trained`, trainings are kept there and go on where they were stopped.
    """
    out, seed, level = settings.out, settings.seed, settings.level
    config = config or PRESETS[settings.preset]()
    config = replace(config, logs=replace(config.logs, source=settings.source, seed=seed))
    now, wanted = settings.tasks or NOW[settings.preset], settings.models or get_args(Model)
    studies = {task: _Task(task, level, config, out, seed, settings.trained) for task in TASKS}
    with progress("rollouts study", len(now) * (len(wanted) + 1), unit="models") as advance:
        for task in now:
            study = studies[task]
            kept(*study.part("unchanged"), study.still)
            advance(1)
            for model in wanted:
                kept(*study.part(model), lambda study=study, model=model: study.measure(model))
                advance(1)
    found = {task: _found(study) for task, study in studies.items() if lookup(*study.part("unchanged"))}
    draw_rollouts(out / "rollouts", found, MODELS)
    films = {
        task: write_film(out / f"rollouts-{task}", task, level, parts, config.film, settings.pictures)
        for task, parts in found.items()
        if task in now
    }
    results = {
        "study": "rollouts",
        "preset": settings.preset,
        "config": asdict(config),
        "seed": seed,
        "level": level,
        "environment": describe_environment(),
        "models": MODELS,
        "horizons": [h for h in HORIZONS if h <= config.horizon],
        "quantiles": QUANTILES,
        "films": films,
        "tasks": {task: _summary(parts, config.horizon) for task, parts in found.items()},
    }
    write_json(out / "results.json", results)
    return results


def _found(study: _Task) -> dict[str, dict[str, Any]]:
    """What has been measured of a task by any run with these settings."""
    parts = {model: lookup(*study.part(model)) for model in ("unchanged", *MODELS)}
    return {model: part for model, part in parts.items() if part is not None}


def _summary(parts: dict[str, dict[str, Any]], horizon: int) -> dict[str, Any]:
    """Quantiles at the stated horizons for every kind of prediction, and the spread of members there."""
    at = [h - 1 for h in HORIZONS if h <= horizon]
    summary: dict[str, Any] = {}
    for model, part in parts.items():
        summary[model] = {
            kind: {measure: np.array(found[measure])[:, at].tolist() for measure in ("raw", "normalised")}
            for kind, found in part["predictions"].items()
        }
        if "members" in part:
            summary[model]["members"] = np.array(part["members"])[:, at].tolist()
            summary[model]["seconds"] = part["seconds"]
    return summary

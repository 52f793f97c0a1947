"""Finished runs, read from their folders and put side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.agents.policy import read_about, seed_folders
from mcetm.errors import UserError
from mcetm.estimates import PolicyEstimates, load_estimates
from mcetm.evaluation.comparison import Comparison, Curve, Dataset, Entry, compare, pool
from mcetm.pipeline.config import read_settings
from mcetm.pipeline.folder import compared_folder
from mcetm.pipeline.results import Results, learning_curve, read_environment, read_module_file, read_results
from mcetm.tasks.datasets import RECIPES, source_name, task_of
from mcetm.tasks.own import UnnamedModuleError, task_in_file
from mcetm.tasks.registry import ReferenceScores, Task
from mcetm.training.metrics import MetricsFile


@dataclass(frozen=True)
class _Line:
    """One algorithm of one run."""

    algorithm: str
    folder: Path
    own: bool
    """The run's own algorithm, not one that it trained for its table."""
    seeds: tuple[int, ...]
    returns: tuple[float, ...]
    updates: int | None
    curve: Curve | None
    settings: Any
    estimates: tuple[PolicyEstimates, ...] = ()
    """Where its returns are estimates: those of each seed."""


@dataclass(frozen=True)
class _Run:
    folder: Path
    source: str
    checksum: str | None
    data_return: float
    task: Task | None
    lines: tuple[_Line, ...]


def compare_runs(runs: Sequence[str | Path]) -> Comparison:
    """Read runs and compare them; `LABEL=FOLDER` takes a run's own algorithm only, and calls it LABEL."""
    found = [_read(*_split(str(run))) for run in runs]
    notes: list[str] = []
    datasets, entries = [], {}
    for name, group in _by_dataset(found).items():
        task = next((run.task for run in group if run.task is not None), None)
        datasets.append(
            Dataset(
                name,
                group[0].data_return,
                None if task is None else task.name,
                None if task is None else task.scores,
            )
        )
        if len({run.checksum for run in group if run.checksum is not None}) > 1:
            notes.append(f"Runs on {name} had different data: their checksums are not the same.")
        by_algorithm: dict[str, list[_Line]] = {}
        for line in (line for run in group for line in run.lines):
            by_algorithm.setdefault(line.algorithm, []).append(line)
        for algorithm, lines in by_algorithm.items():
            kept = _without_repetition(lines, name)
            notes += _estimated(algorithm, name, kept)
            if any(line.settings != kept[0].settings for line in kept):
                notes.append(f"{algorithm} on {name} pools runs with different settings.")
            entries[algorithm, name] = _pool(kept)
    return compare(datasets, entries, notes)


def _split(text: str) -> tuple[Path, str | None]:
    label, sign, folder = text.partition("=")
    if sign and label and not Path(text).exists():
        return Path(folder), label
    return Path(text), None


def _read(folder: Path, label: str | None) -> _Run:
    """One run, whole and measured, or one sentence that says what it lacks."""
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} is not a run of `mcetm train`: there is no config.json in it.")
    if not (folder / "results.json").is_file():
        raise UserError(f"{folder} is not finished; go on with: mcetm train --resume {folder}")
    config, results = read_settings(folder / "config.json"), read_results(folder)
    _check_together(folder, config, results)
    seeds, own, lines = tuple(results.seeds), results.own, []
    for name in [own] if label is not None else list(results.algorithms):
        found = results.algorithms[name]
        if found is None and name != own:
            continue  # only the run's own policies are kept, so that no other can be estimated
        estimates = () if found is not None else _estimates(folder, seeds)
        returns = tuple(_value(folder, one) for one in estimates) if found is None else tuple(found.returns)
        place = folder if name == own else compared_folder(folder, name)
        history = MetricsFile(place / "metrics.jsonl").read()
        lines.append(
            _Line(
                algorithm=name if label is None else label,
                folder=folder,
                own=name == own,
                seeds=seeds,
                returns=returns,
                updates=int(history[-1]["step"]) if history else None,
                curve=learning_curve(history, len(seeds)),
                settings=[config.get(name) for name in ("algorithm", "model", "world")],
                estimates=estimates,
            )
        )
    task = _task(folder, config, results.dataset)
    _check_scores(folder, results, None if task is None else task.scores)
    return _Run(
        folder,
        results.dataset,
        read_environment(folder).dataset_checksum,
        results.data_return,
        task,
        tuple(lines),
    )


def _estimates(folder: Path, seeds: tuple[int, ...]) -> tuple[PolicyEstimates, ...]:
    """The estimate of each seed of a run that had no environment to be measured in."""
    by_name = {one.policy.rpartition(" ")[2]: one for one in load_estimates(folder / "estimates")}
    names = [f"seed-{seed}" for seed in seeds]
    if any(name not in by_name for name in names):
        raise UserError(
            f"{folder} has no returns to compare: its dataset had no task to measure them in. "
            f"Estimate them first: mcetm estimate {folder}"
        )
    return tuple(by_name[name] for name in names)


def _value(folder: Path, found: PolicyEstimates) -> float:
    chosen = found.chosen
    if chosen is None or chosen.value is None:
        raise UserError(f"{folder} cannot be compared: no estimator had an answer for {found.policy}.")
    return chosen.value


def _estimated(algorithm: str, dataset: str, lines: Sequence[_Line]) -> list[str]:
    """That numbers are estimates, and how many of them can be believed."""
    found = [one for line in lines for one in line.estimates]
    if not found:
        return []
    believed = sum(one.believed for one in found)
    words = (
        f"{algorithm} on {dataset}: returns are estimates, not measured; {believed} of {len(found)} believed."
    )
    some = "" if all(line.estimates for line in lines) else " Measured returns are pooled with them."
    return [words + some]


def _check_together(folder: Path, config: dict[str, Any], results: Results) -> None:
    """Settings and results must be of one run."""
    seed, count = config.get("seed", 0), config.get("seeds", 3)
    for name, configured, found in (
        ("dataset", config.get("dataset", results.dataset), results.dataset),
        ("seeds", list(range(seed, seed + count)), results.seeds),
        ("label", config["label"], results.own),
    ):
        if configured != found:
            raise UserError(
                f"{folder} cannot be used: '{name}' is {configured!r:.80} in config.json and "
                f"{found!r:.80} in results.json."
            )


def _task(folder: Path, config: dict[str, Any], source: str) -> Task | None:
    """The task of a run: as configured, as its policies say, or as the dataset's name tells."""
    policies = [place for place in seed_folders(folder) if (place / "policy.json").exists()]
    name = source_name(source)
    recipe = RECIPES.get(name)
    candidates = (
        config.get("task"),
        read_about(policies[0]).get("task") if policies else None,
        recipe.task if recipe is not None else task_of(name),
    )
    for candidate in candidates:
        if candidate is not None:
            try:
                return task_in_file(str(candidate), folder, module_file=read_module_file(folder))
            except UnnamedModuleError:
                raise
            except UserError:  # a task of the user's own that is not at hand: returns are still returns
                continue
    return None


def _check_scores(folder: Path, results: Results, references: ReferenceScores | None) -> None:
    """Scores that a run has printed must be the ones that are shown here."""
    if references is None:
        return
    for found in results.algorithms.values():
        if found is None or found.score is None:
            continue
        if not math.isclose(
            references.normalize(np.mean(found.returns)), found.score, rel_tol=1e-6, abs_tol=1e-6
        ):
            raise UserError(f"{folder} was scored with other reference returns than those known here.")


def _by_dataset(runs: Sequence[_Run]) -> dict[str, list[_Run]]:
    """Runs by dataset: the same source or the same content; names are short where that is clear."""
    groups: list[list[_Run]] = []
    for run in runs:
        for group in groups:
            if any(
                run.source == other.source or (run.checksum is not None and run.checksum == other.checksum)
                for other in group
            ):
                group.append(run)
                break
        else:
            groups.append([run])
    names = [min((source_name(run.source) for run in group), key=len) for group in groups]
    clear = len(set(names)) == len(names)
    return {name if clear else group[0].source: group for name, group in zip(names, groups, strict=True)}


def _without_repetition(lines: Sequence[_Line], dataset: str) -> list[_Line]:
    """Refuse a seed that is there twice, unless it is one result that two tables repeat."""
    kept: list[_Line] = []
    for line in lines:
        twin = next((other for other in kept if set(other.seeds) & set(line.seeds)), None)
        if twin is None:
            kept.append(line)
        elif (line.own and twin.own) or (line.seeds, line.returns) != (twin.seeds, twin.returns):
            seed = min(set(twin.seeds) & set(line.seeds))
            raise UserError(
                f"{line.algorithm} on {dataset} with seed {seed} is in {twin.folder} and in {line.folder}: "
                "leave one out, or tell them apart as LABEL=RUN."
            )
    return kept


def _pool(lines: Sequence[_Line]) -> Entry:
    """Seeds of several runs of one algorithm on one dataset; a curve where all were evaluated together."""
    return pool(
        [
            Entry(
                seeds=line.seeds,
                returns=line.returns,
                updates=() if line.updates is None else (line.updates,),
                curve=line.curve,
                folders=(str(line.folder),),
            )
            for line in lines
        ]
    )

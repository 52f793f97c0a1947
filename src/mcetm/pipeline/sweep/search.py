"""The settings to try, round by round: all of a grid at once, and of a search what is to be tried next.

What Optuna proposes is kept before it is tried. So a search that was stopped goes on with the same settings,
whatever was under way, and the same search finds the same.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.documents import read_json
from mcetm.errors import UserError
from mcetm.files import write_json
from mcetm.pipeline.cell import hash_of
from mcetm.pipeline.sweep.jobs import Planned
from mcetm.pipeline.sweep.plan import Range, Search, SweepPlan, System, Variant, grid_of, planned_of
from mcetm.pipeline.sweep.score import Score

_DIGITS = 5
"""Of a number that is drawn: more would only make names long."""

Judge = Callable[[str, str], Score | None]
"""What was found of a label on a log; None where nothing was."""


def rounds(plan: SweepPlan, folder: Path, judge: Judge) -> Iterator[list[Planned]]:
    """The cells to train, a list at a time; what `judge` says of one list decides on the next."""
    tried: dict[tuple[int, str], list[tuple[str, Variant]]] = {}
    count = 0
    while True:
        found: list[Planned] = []
        for log in plan.logs:
            for i in range(len(plan.systems)):
                before = tried.setdefault((i, log), [])
                for variant in _next(plan, i, log, before, folder, judge, count):
                    cells = list(planned_of(plan, [variant], log))
                    before.append((cells[0].label, variant))
                    found += cells
        if not found:
            return
        _check_labels(found)
        yield found
        count += 1


def _next(
    plan: SweepPlan,
    number: int,
    log: str,
    before: Sequence[tuple[str, Variant]],
    folder: Path,
    judge: Judge,
    count: int,
) -> list[Variant]:
    """What is tried of a system on a log in this round."""
    system, search = plan.systems[number], plan.search
    if not system.over:
        return grid_of(system) if count == 0 else []
    if search.method == "random":
        return _drawn(system, search, number) if count == 0 else []
    left = min(search.batch, search.trials - len(before))
    if left <= 0:
        return []
    name = [system.model_dump(), search.model_dump(), plan.chosen_by, log, number]
    path = folder / "search" / f"{hash_of(name)}-{count}.json"
    if not path.exists():
        scores = [(variant.values, judge(label, log)) for label, variant in before]
        write_json(path, _asked(system, search, scores, left, seed=[search.seed, number, count]))
    return [Variant(system, values) for values in read_json(path, list[dict[str, Any]])]


def _drawn(system: System, search: Search, number: int) -> list[Variant]:
    """Settings drawn at random, each once; the same for every log."""
    rng = np.random.default_rng([search.seed, number])
    found: dict[str, Variant] = {}
    for _ in range(20 * search.trials):  # a few choices may have fewer combinations than trials
        values = {path: _draw(range_, rng) for path, range_ in system.over.items()}
        variant = Variant(system, values)
        found.setdefault(variant.words, variant)
        if len(found) == search.trials:
            break
    return list(found.values())


def _draw(range_: Range, rng: np.random.Generator) -> Any:
    if range_.choices is not None:
        return range_.choices[int(rng.integers(len(range_.choices)))]
    low, high = _ends(range_)
    if range_.is_whole and not range_.log:
        return int(rng.integers(int(low), int(high) + 1))
    value = math.exp(rng.uniform(math.log(low), math.log(high))) if range_.log else rng.uniform(low, high)
    return _short(value, range_)


def _short(value: float, range_: Range) -> Any:
    """With a few digits, and inside the range all the same."""
    low, high = _ends(range_)
    short = round(value) if range_.is_whole else float(f"{value:.{_DIGITS}g}")
    return min(max(short, low), high)


def _ends(range_: Range) -> tuple[float, float]:
    if range_.low is None or range_.high is None:
        raise UserError("A range needs low and high.")
    return range_.low, range_.high


def _asked(
    system: System,
    search: Search,
    scores: Sequence[tuple[Mapping[str, Any], Score | None]],
    count: int,
    *,
    seed: list[int],
) -> list[dict[str, Any]]:
    """What Optuna proposes next, after all that was found."""
    try:
        optuna: Any = importlib.import_module("optuna")
    except ImportError:
        raise UserError(
            "Optuna is not installed, which the search asks for: pip install 'mcetm[sweep]'."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=int(np.random.SeedSequence(seed).generate_state(1)[0]),
            constant_liar=True,  # of a batch, each knows what the others try
        )
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for values, score in scores:
            study.enqueue_trial(dict(values))
            trial = study.ask()
            _suggested(trial, system)
            trial.set_constraint("disbelief", 1.0 if score is None else 0.5 - score.believed)
            if score is None or score.value is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, score.value)
        return [_suggested(study.ask(), system) for _ in range(count)]


def _suggested(trial: Any, system: System) -> dict[str, Any]:
    found = {}
    for path, range_ in system.over.items():
        if range_.choices is not None:
            found[path] = trial.suggest_categorical(path, range_.choices)
            continue
        low, high = _ends(range_)
        if range_.is_whole:
            found[path] = trial.suggest_int(path, int(low), int(high), log=range_.log)
        else:
            found[path] = _short(trial.suggest_float(path, low, high, log=range_.log), range_)
    return found


def _check_labels(found: Sequence[Planned]) -> None:
    """Under one name, two systems would be taken for more seeds of one."""
    owners: dict[tuple[str, str], Any] = {}
    for one in found:
        config = one.cell.config
        mine = (one.system, dict(one.values), config.algorithm, config.model, config.world)
        if owners.setdefault((one.label, one.source), mine) != mine:
            raise UserError(f"The sweep has two systems called {one.label}; give each a label.")

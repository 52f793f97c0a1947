"""Estimates of many policies' returns, each beside the return that the policy has in the simulator.

After Fu et al., "Benchmarks for deep off-policy evaluation" (ICLR 2021): a log, policies from bad to good,
and for each estimator its error, its order and the regret of choosing by it. Beside these the study counts
how often a 90 % interval holds the true return, for all estimates and for those that are believed. Policies
that collected the log are counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mcetm import (
    BC,
    IQL,
    EstimateSettings,
    GaussianEnsemble,
    Policy,
    UserError,
    estimate,
    evaluate,
    fit,
    load_dataset,
)
from mcetm.data import Transitions
from mcetm.envs import available_cores, collect_recipe, find_policy
from mcetm.estimates import LABELS, FQESettings, ModelBasedSettings
from mcetm.files import write_json
from mcetm.pipeline import describe_environment
from mcetm.settings import to_plain
from mcetm.tasks import RECIPES, get_task
from mcetm_experiments.estimates.figures import draw_estimates
from mcetm_experiments.estimates.measures import coverage, measures
from mcetm_experiments.shared.keeping import kept

if TYPE_CHECKING:
    from mcetm_experiments.estimates.settings import EstimatesStudy

_SNAPSHOTS = 11
_FRESH = 1_000_000
"""Seed of the episodes that true returns are measured in; no log has it."""

PRESETS: dict[str, EstimateSettings] = {
    "quick": EstimateSettings(),
    "fast": EstimateSettings(
        fqe=FQESettings(width=256, batch_size=512, steps=20_000, learning_rate=1e-3, samples=1),
        model_based=ModelBasedSettings(starts=50),
        model=GaussianEnsemble(
            members=5, elites=5, bootstrap=True, width=200, depth=4, batch_size=1024, steps=20_000
        ),
    ),
}
"""Settings of the estimators, by preset."""


def run_estimates(settings: EstimatesStudy) -> dict[str, Any]:
    """All logs and seeds; what is done is kept beside the results."""
    if settings.seeds < 1 or settings.seed < 0 or settings.episodes < 2:
        raise UserError("The study needs at least one seed and two episodes (--seeds, --episodes).")
    logs: dict[str, Any] = {}
    for name in settings.logs:
        if name not in RECIPES:
            raise UserError(f"The study needs a dataset with a recipe, and '{name}' has none.")
        policies: dict[str, Policy] = {}
        parts = []
        for seed in range(settings.seed, settings.seed + settings.seeds):
            setting = {
                "log": name,
                "rows": settings.rows,
                "lengths": settings.lengths,
                "episodes": settings.episodes,
                "estimators": to_plain(PRESETS[settings.preset]),
                "seed": seed,
            }
            path = settings.out / "parts" / f"{name}-{settings.preset}-{seed}.json"

            def make(name: str = name, seed: int = seed, known: dict[str, Policy] = policies) -> Any:
                if not known:
                    known.update(policies_of(name, settings.lengths))
                true = true_returns(known, name, settings)
                return measure(log_of(name, seed, settings.rows), name, known, true, settings.preset, seed)

            parts.append(kept(path, setting, make))
        logs[name] = {"parts": parts}
    results = {
        "study": "estimates",
        "preset": settings.preset,
        "logs": logs,
        "summary": summary(logs),
        "environment": describe_environment(),
    }
    write_json(settings.out / "results.json", results)
    draw_estimates(settings.out / "estimates", results)
    return results


def log_of(name: str, seed: int, rows: int | None = None) -> Transitions:
    """The dataset itself for seed 0, else another one by its recipe; of another length if it is asked for."""
    if seed == 0 and rows is None:
        return load_dataset(name)
    return collect_recipe(RECIPES[name], steps=rows, seed=seed)


def true_returns(policies: dict[str, Policy], name: str, settings: EstimatesStudy) -> dict[str, Any]:
    """Mean return of each policy and its error, kept for all logs of a task that share its policies."""
    checksums = {label: policy.network.checksum for label, policy in policies.items()}
    task = RECIPES[name].task

    def make() -> dict[str, Any]:
        found = evaluate(
            list(policies.values()),
            task,
            episodes=settings.episodes,
            seed=_FRESH,
            processes=available_cores(),
        )
        return {
            label: [one.mean, one.std / np.sqrt(settings.episodes)]
            for label, one in zip(policies, found.of_policies, strict=True)
        }

    setting = {"task": task, "episodes": settings.episodes, "policies": checksums}
    return kept(settings.out / "returns" / f"{task}.json", setting, make)


def policies_of(name: str, lengths: Sequence[int]) -> dict[str, Policy]:
    """SAC snapshots where a data folder has those of the task, else policies trained on the log."""
    task = get_task(RECIPES[name].task)
    found: dict[str, Policy] = {}
    if task.name in ("hopper", "walker2d", "halfcheetah"):
        for number in range(_SNAPSHOTS):
            snapshot = f"{task.name}_sac_snapshot_{number:02d}"
            network = find_policy(snapshot, task)
            if network is not None:
                found[snapshot] = Policy(network, {})
        if not found:
            raise UserError(f"The SAC snapshots of {task.name} are not at hand; see MCETM_DATA.")
        return found
    log = load_dataset(name)
    for steps in lengths:
        for label, algorithm in (("iql", IQL(steps=steps)), ("bc", BC(steps=steps))):
            found[f"{label}-{steps}"] = fit(algorithm, log, seed=steps).policies[0]
    return found


def measure(
    log: Transitions,
    name: str,
    policies: dict[str, Policy],
    true: dict[str, Any],
    preset: str,
    seed: int,
) -> dict[str, Any]:
    """The estimates of all policies from one log, beside their true returns."""
    makers = {policy for part in RECIPES[name].parts for policy in part.policies}
    found = estimate(list(policies.values()), log, settings=PRESETS[preset], seed=seed)
    rows = {}
    for label, one in zip(policies, found.of_policies, strict=True):
        rows[label] = {
            "true": true[label][0],
            "error": true[label][1],
            "collected": label in makers,
            "believed": one.believed,
            "chosen": None if one.chosen is None else one.chosen.estimator,
            "estimates": {
                e.estimator: {
                    "value": e.value,
                    "interval": e.interval,
                    "believed": e.believed,
                    "reasons": e.reasons,
                    "details": e.details,
                }
                for e in one.of
            },
        }
    return {"log_return": found.log_return, "quantity": found.quantity, "policies": rows}


def summary(logs: dict[str, Any]) -> dict[str, Any]:
    """What each estimator is worth on each log, and how often intervals hold the truth over all of them."""
    by_log: dict[str, Any] = {}
    hits: dict[str, dict[str, list[bool]]] = {}
    for name, log in logs.items():
        by_log[name] = {}
        for estimator in (*LABELS, "chosen"):
            found = [_of_part(part["policies"], estimator) for part in log["parts"]]
            found = [one for one in found if one is not None]
            cases = [case for part in log["parts"] for case in _cases(part["policies"], estimator)]
            noted = hits.setdefault(estimator, {"all": [], "believed": []})
            noted["all"] += [hit for hit, _ in cases]
            noted["believed"] += [hit for hit, believed in cases if believed]
            count = sum(not row["collected"] for part in log["parts"] for row in part["policies"].values())
            by_log[name][estimator] = {
                "answered": len(cases),
                "asked": count,
                "believed": sum(believed for _, believed in cases),
                "coverage": coverage([hit for hit, _ in cases]),
                "coverage_believed": coverage([hit for hit, believed in cases if believed]),
                "of_makers": coverage(
                    [
                        hit
                        for part in log["parts"]
                        for hit, _ in _cases(part["policies"], estimator, makers=True)
                    ]
                ),
                **_mean(found),
            }
    return {
        "logs": by_log,
        "coverage": {name: {kind: coverage(some) for kind, some in of.items()} for name, of in hits.items()},
    }


def _picked(row: dict[str, Any], estimator: str) -> dict[str, Any] | None:
    """The estimate of one policy by an estimator, or the one that is chosen for it."""
    name = row["chosen"] if estimator == "chosen" else estimator
    one = row["estimates"].get(name)
    if one is None or one["value"] is None:
        return None
    # What is chosen is believed as a whole: no other estimate that is believed contradicts it.
    return {**one, "believed": row["believed"]} if estimator == "chosen" else one


def _of_part(policies: dict[str, Any], estimator: str) -> dict[str, float] | None:
    """Measures over the policies that the estimator has an answer for, those that collected the log apart."""
    rows = [
        (row, one)
        for row in policies.values()
        if not row["collected"] and (one := _picked(row, estimator)) is not None
    ]
    if len(rows) < 2:
        return None
    column = lambda values: np.array(list(values), float)  # noqa: E731
    return measures(
        column(row["true"] for row, _ in rows),
        column(row["error"] for row, _ in rows),
        column(one["value"] for _, one in rows),
    )


def _cases(policies: dict[str, Any], estimator: str, *, makers: bool = False) -> list[tuple[bool, bool]]:
    """Whether each interval holds the true return, and whether it was believed; makers of the log apart."""
    found = []
    for row in policies.values():
        one = _picked(row, estimator)
        if one is not None and row["collected"] == makers:
            low, high = one["interval"]
            found.append((bool(low <= row["true"] <= high), bool(one["believed"])))
    return found


def _mean(found: Sequence[dict[str, float]]) -> dict[str, float | None]:
    """Mean over logs of one name; a measure that some lack is of the others."""
    names = ("absolute_error", "relative_error", "spearman", "regret_1", "regret_5")
    values = {name: [one[name] for one in found if name in one] for name in names}
    return {name: float(np.mean(some)) if some else None for name, some in values.items()}

"""The policies of runs that one of is to be deployed, with their estimates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcetm.console import say
from mcetm.errors import UserError
from mcetm.estimates import Asked, Candidate, EstimateSettings, FQESettings, Quantity, hold_tournament
from mcetm.pipeline.estimate import estimate_runs, full_name, read_estimates, read_run, run_names
from mcetm.tasks.registry import get_task


def candidates(
    folders: Sequence[Path],
    *,
    settings: EstimateSettings | None = None,
    seed: int = 0,
    tournament: bool = False,
) -> list[Candidate]:
    """The policies of runs with their estimates; what was not estimated is estimated now."""
    settings = settings or EstimateSettings()
    if tournament:
        settings = replace(settings, fqe=_winner(folders, settings, seed))
    missing = [folder for folder in folders if tournament or not read_estimates(folder)]
    if missing:
        estimate_runs(missing, settings=settings, seed=seed)
    names = run_names(folders)
    found = [
        Candidate(
            full_name(names[folder], _short(one.policy)), folder, replace(one, policy=_short(one.policy))
        )
        for folder in folders
        for one in read_estimates(folder)
    ]
    logs = {one.estimates.of[0].log_checksum for one in found}
    if len(logs) > 1:
        raise UserError(
            "These runs were estimated from different logs, so they cannot be set beside each other."
        )
    return found


def _short(policy: str) -> str:
    """The name of a policy within its run."""
    return policy.rpartition(" ")[2]


def _winner(folders: Sequence[Path], settings: EstimateSettings, seed: int) -> FQESettings:
    """The best of some settings around those that are asked for."""
    runs = [read_run(folder) for folder in folders]
    log = runs[0].log
    if len({run.log.checksum for run in runs}) > 1:
        raise UserError("A tournament needs runs on one log.")
    task = None if log.metadata.task is None else get_task(log.metadata.task)
    quantity = Quantity.of(log, task, discount=settings.discount, horizon=settings.horizon)
    asked = [
        Asked.of(policy, full_name(str(run.folder), name), log)
        for run in runs
        for name, policy in run.policies
    ]
    found = hold_tournament(asked, log, quantity, variants(settings.fqe), seed=seed)
    for config, score in zip(found.settings, found.scores, strict=True):
        sizes = f"width {config.width}, learning rate {config.learning_rate:g}, polyak {config.polyak:g}"
        say(f"{'won' if config == found.winner else 'lost'}: {sizes}: {score:.3g}", file=sys.stderr)
    return found.winner


def variants(config: FQESettings) -> tuple[FQESettings, ...]:
    """Settings that a tournament is held among: other sizes and speeds around the given ones."""
    return (
        config,
        replace(config, width=max(1, config.width // 2)),
        replace(config, learning_rate=config.learning_rate / 3),
        replace(config, polyak=min(0.5, 3 * config.polyak)),
    )

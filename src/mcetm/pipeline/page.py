"""The pages that people look at, made from run folders: of one run, of several, of a folder of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.agents.inside import inside_of
from mcetm.agents.policy import Policy, load_policy, seed_folders
from mcetm.agents.regions import Regions, regions_of
from mcetm.console import one_line
from mcetm.data.transitions import Transitions
from mcetm.documents import read_json
from mcetm.errors import UserError
from mcetm.estimates import load_estimates
from mcetm.evaluation.comparison import Comparison
from mcetm.pipeline.compare import compare_runs
from mcetm.pipeline.config import TrainConfig, plain_of, read_config
from mcetm.pipeline.folder import compared_folder
from mcetm.pipeline.results import read_card, read_results
from mcetm.pipeline.source import read_log_again
from mcetm.report.findings import Findings, read_findings
from mcetm.report.page import RunPage, write_report
from mcetm.report.several import Listed, write_index, write_several
from mcetm.tasks.datasets import source_name
from mcetm.training.metrics import MetricsFile

_ROWS = 20_000
"""States of the log that are looked at, at most."""
_FEW_EPISODES = 5
"""Fewer held-out episodes do not show where in the log a policy can be trusted."""


def make_page(folder: Path) -> Path:
    """The report of a finished run, made anew from its folder; nothing is trained."""
    return write_report(read_page(folder))


def read_page(folder: Path) -> RunPage:
    """What a finished run's folder holds for its page."""
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} is not a run of `mcetm train`: there is no config.json in it.")
    if not (folder / "results.json").is_file():
        raise UserError(f"{folder} is not finished; go on with: mcetm train --resume {folder}")
    config, results = read_config(folder / "config.json"), read_results(folder)
    findings = read_findings(folder)
    if findings is None:
        findings = _found_again(folder, config)
        findings.save(folder)
    environment = folder / "environment.json"
    places = {
        name: folder if name == results.own else compared_folder(folder, name) for name in results.algorithms
    }
    return RunPage(
        folder=folder,
        title=f"{config.label} on {source_name(config.dataset)}",
        results=results.model_dump(),
        histories={name: MetricsFile(place / "metrics.jsonl").read() for name, place in places.items()},
        config=plain_of(config),
        environment=read_json(environment, dict[str, Any]) if environment.exists() else {},
        card=read_card(folder),
        findings=findings,
        estimates=load_estimates(folder / "estimates"),
    )


def _found_again(folder: Path, config: TrainConfig) -> Findings:
    """What a run of an earlier version did not keep, as far as its policies and its log still say it."""
    policies = [load_policy(place) for place in seed_folders(folder) if (place / "policy.json").is_file()]
    policies = [policy for policy in policies if policy.pairs is not None]
    if not policies:
        return Findings()
    log = read_log_again(config, folder)
    held_out = log.split(config.holdout, seed=config.seed)[1].head(_ROWS)
    inside = tuple(inside_of(policy, held_out) for policy in policies)
    return Findings(inside, find_regions(policies, held_out, log))


def find_regions(
    policies: Sequence[Policy],
    held_out: Transitions,
    log: Transitions,
    visited: Sequence[np.ndarray] | None = None,
) -> Regions:
    """Where policies can be trusted, by held-out states; by all of the log where too few were held out."""
    few = held_out.num_episodes < _FEW_EPISODES
    rows = log.obs if few else held_out.obs
    chosen = np.random.default_rng(0).permutation(len(rows))[:_ROWS]
    return regions_of(policies, rows[np.sort(chosen)], log.obs, visited, learned=few)


def make_several(folders: Sequence[Path], out: Path) -> Path:
    """One page over several finished runs: verdicts side by side, curves together, the table of `compare`."""
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("A run is named twice.")
    pages = [read_page(folder) for folder in folders]
    names = _names(folders)
    pages = [replace(page, title=name) for page, name in zip(pages, names, strict=True)]
    compared, notes = _compared(pages)
    return write_several(out, pages, compared, notes)


def _names(folders: Sequence[Path]) -> list[str]:
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def _compared(pages: Sequence[RunPage]) -> tuple[Comparison | None, list[str]]:
    """The comparison of runs that have numbers to compare, and which have none."""
    known, without = [], []
    for page in pages:
        measured = list(page.results["algorithms"].values())[-1] is not None
        estimated = page.estimates and all(each.chosen is not None for each in page.estimates)
        (known if measured or estimated else without).append(page)
    notes = [
        f"{page.title} has no returns to compare. Estimate them first: mcetm estimate {page.folder}"
        for page in without
    ]
    if not known:
        return None, notes
    try:
        return compare_runs([str(page.folder) for page in known]), notes
    except UserError as error:  # such as one seed that is there twice: their verdicts can still be shown
        if len(known) > 1:
            try:
                labelled = [f"{_label(page)}={page.folder}" for page in known]
                return compare_runs(labelled), notes
            except UserError:
                pass
        return None, [*notes, f"There is no table: {error}"]


def _label(page: RunPage) -> str:
    own = list(page.results["algorithms"])[-1]
    return f"{own} ({page.title})".replace("=", "-")


def make_index(folder: Path) -> Path:
    """A page over a folder of runs, `index.html` in it: each run in a line with a link to its report."""
    places = sorted(path.parent for path in folder.glob("*/config.json"))
    if not places:
        raise UserError(f"{folder} is not a run of `mcetm train`, and there is no run in it.")
    return write_index(folder, [_listed(place) for place in places])


def _listed(place: Path) -> Listed:
    """A run on the index; one that cannot be read says why, and hides no other."""
    try:
        config = read_config(place / "config.json")
        start = f"{config.label} on {source_name(config.dataset)}"
    except UserError as error:
        return Listed(place.name, one_line(str(error), 300))
    try:
        page = read_page(place)
        report = place / "report.html"
        if not report.is_file():
            write_report(page)
    except UserError as error:
        return Listed(place.name, start, unfinished=one_line(str(error), 300))
    return Listed(place.name, start, page=page)

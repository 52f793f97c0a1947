"""`estimate`: what policies would earn, from a log alone; for policies at hand and for those of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcetm.agents.policy import Policy, load_policy, seed_folders
from mcetm.arguments import path_of, require
from mcetm.data.transitions import Transitions
from mcetm.dynamics.world import World
from mcetm.errors import UserError
from mcetm.estimates import (
    Asked,
    Estimates,
    EstimateSettings,
    PolicyEstimates,
    estimate_policies,
    load_estimates,
)
from mcetm.pipeline.config import read_config
from mcetm.pipeline.source import read_log_again

FOLDER = "estimates"
"""Where a run keeps the estimates of its policies."""


def estimate(
    policies: Policy | Sequence[Policy] | str | Path,
    log: Transitions | None = None,
    *,
    world: World | None = None,
    settings: EstimateSettings | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> Estimates:
    """Estimate what policies would earn, without a simulator.

    **Arguments:**

    - `policies`: one policy or several, as an agent has them or `load_policy` reads them, or a run's folder.
    - `log`: what to estimate from; a run's own by default. Better one that the policies did not learn from.
    - `world`: what episodes are imagined in. None trains a model for the purpose, which no policy has seen.
    - `settings`: which estimators are asked, and how.
    - `seed`: of all that is random.
    - `folder`: where every estimate gets a JSON file of its own. None writes nothing.

    **Returns:** for each policy an estimate of each estimator: a number, a 90 % interval and whether it can
    be believed, with the reasons. Estimators that disagree are shown beside each other.
    """
    place = None if folder is None else path_of("folder", folder)
    if isinstance(policies, str | Path):
        run = read_run(Path(policies))
        asked = [(name, policy) for name, policy in run.policies]
        log = run.log if log is None else log
    else:
        given = list(policies) if isinstance(policies, Sequence) else [policies]
        if any(not isinstance(one, Policy) for one in given):
            raise UserError("policies= should be policies, as an agent has them, or the folder of a run.")
        asked = [(f"policy-{i}", policy) for i, policy in enumerate(given)]
    if log is None:
        raise UserError("Name the log to estimate from: only a run knows its own (log=).")
    if not asked:
        raise UserError("There is no policy to estimate the return of.")
    require("log", log, "a log (Transitions)", Transitions)
    found = estimate_policies(
        [Asked.of(policy, name, log) for name, policy in asked], log, settings, world=world, seed=seed
    )
    if place is not None:
        for one in found.of_policies:
            one.save(place)
    return found


@dataclass(frozen=True)
class RunPolicies:
    """The policies of a run, by name, and the log that they learned from."""

    folder: Path
    policies: tuple[tuple[str, Policy], ...]
    log: Transitions


def read_run(folder: Path) -> RunPolicies:
    """A run's policies and its log; nothing is trained."""
    config = read_config(folder / "config.json")
    places = [place for place in seed_folders(folder) if (place / "policy.json").is_file()]
    if not places:
        raise UserError(f"{folder} has no policies yet; go on with: mcetm train --resume {folder}")
    policies = tuple((place.name, load_policy(place)) for place in places)
    return RunPolicies(folder, policies, read_log_again(config, folder))


def estimate_runs(
    folders: Sequence[Path],
    log: Transitions | None = None,
    *,
    settings: EstimateSettings | None = None,
    seed: int = 0,
) -> list[Estimates]:
    """Estimate the policies of runs, those on one log together; each run keeps its own in `estimates/`."""
    runs = [read_run(folder) for folder in folders]
    groups: dict[str, list[RunPolicies]] = {}
    for run in runs:
        own = run.log if log is None else log
        groups.setdefault(own.checksum, []).append(run)
    names = run_names(folders)
    results = []
    for group in groups.values():
        own = group[0].log if log is None else log
        asked = [
            (run, name, Asked.of(policy, full_name(names[run.folder], name), own))
            for run in group
            for name, policy in run.policies
        ]
        found = estimate_policies([one for _, _, one in asked], own, settings, seed=seed)
        for (run, name, _), one in zip(asked, found.of_policies, strict=True):
            one.save(run.folder / FOLDER, name)
        results.append(found)
    return results


def run_names(folders: Sequence[Path]) -> dict[Path, str]:
    """What runs are called beside each other: nothing for a single one, else what tells them apart."""
    if len(folders) == 1:
        return {folders[0]: ""}
    short = [folder.name for folder in folders]
    if len(set(short)) == len(short):
        return dict(zip(folders, short, strict=True))
    return {folder: str(folder) for folder in folders}


def full_name(run: str, name: str) -> str:
    """What a policy is called beside those of other runs."""
    return f"{run} {name}" if run else name


def read_estimates(folder: Path) -> tuple[PolicyEstimates, ...]:
    """What a run keeps of estimates; none where it was never estimated."""
    return load_estimates(folder / FOLDER)

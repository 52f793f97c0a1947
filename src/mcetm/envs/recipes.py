"""Collecting a dataset: a named one by its recipe, or any by its task and policies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from mcetm.arguments import require, whole
from mcetm.data.d4rl import write_d4rl
from mcetm.data.transitions import Transitions
from mcetm.envs.behaviour import find_policies
from mcetm.envs.collection import Share, collect_shares
from mcetm.errors import UserError
from mcetm.files import cache_folder
from mcetm.tasks.datasets import Recipe, RecipePart
from mcetm.tasks.policy import BehaviourPolicy
from mcetm.tasks.registry import Task, get_task

_CACHE_VERSION = 1
"""Part of a cached dataset's name; raise it when collection itself changes what it yields."""


def collect(
    task: str | Task,
    steps: int,
    policy: str | Path | BehaviourPolicy | Sequence[str | Path | BehaviourPolicy] = "uniform",
    *,
    mix: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    processes: int | None = None,
) -> Transitions:
    """Collect transitions of a task, registered or not.

    **Arguments:**

    - `task`: its name, or a `Task`.
    - `steps`: transitions to collect.
    - `policy`: who acts: a name (`uniform`, `swing-up`), a weight file, or an object with `sample` and
      `checksum`. Several collect equal shares one after the other.
    - `mix`: of several policies, each episode draws one.
    - `deterministic`: networks act with their mode instead of a sample.
    - `seed`: the same seed gives the same data, whatever the number of processes.
    - `processes`: simulators at work; one per core by default.

    **Returns:** the log.
    """
    require("task", task, "a Task or the name of one", str, Task)
    whole("steps", steps, least=1, most=2**62)
    task = get_task(task) if isinstance(task, str) else task
    require(
        "policy", policy, "a name, a file, a policy or a list of them", str, Path, BehaviourPolicy, Sequence
    )
    given = [policy] if isinstance(policy, str | Path | BehaviourPolicy) else list(policy)
    named = {item if isinstance(item, str) else str(item): item for item in given}
    found = {name: item for name, item in named.items() if isinstance(item, BehaviourPolicy)}
    found |= find_policies(
        [name for name in named if name not in found],
        task,
        wanted_for=f"'{task.name}'",
        deterministic=deterministic,
    )
    parts = (RecipePart(tuple(named)),) if mix else tuple(RecipePart((name,)) for name in named)
    shares = _shares(parts, found, steps)
    return collect_shares(task, shares, seed=seed, processes=processes)


def collect_recipe(
    recipe: Recipe, *, steps: int | None = None, seed: int = 0, processes: int | None = None
) -> Transitions:
    """Collect a named dataset, at its own size or another."""
    task = get_task(recipe.task)
    names = list(dict.fromkeys(name for part in recipe.parts for name in part.policies))
    policies = find_policies(names, task, wanted_for=recipe.name)
    shares = _shares(recipe.parts, policies, recipe.transitions if steps is None else steps)
    return collect_shares(task, shares, seed=seed, processes=processes, dataset=recipe.name, note=recipe.note)


def _shares(parts: tuple[RecipePart, ...], policies: dict[str, BehaviourPolicy], steps: int) -> list[Share]:
    """Steps dealt out to the parts by their weights."""
    if steps < len(parts):
        raise UserError(f"{steps} steps are too few for {len(parts)} policies to share.")
    weights = [part.weight for part in parts]
    ends = [round(steps * sum(weights[: i + 1]) / sum(weights)) for i in range(len(weights))]
    return [
        Share(tuple(policies[name] for name in part.policies), end - start, part.policies)
        for part, start, end in zip(parts, [0, *ends[:-1]], ends, strict=True)
    ]


def dataset_path(recipe: Recipe) -> Path:
    """Where a named dataset is kept once it has been collected; another recipe has another place."""
    fingerprint = hashlib.sha256(f"{_CACHE_VERSION}{recipe!r}".encode()).hexdigest()[:8]
    return cache_folder() / "collected" / f"{recipe.name}-{fingerprint}.hdf5"


def cached_dataset(recipe: Recipe) -> Path:
    """The file of a named dataset, collected with seed 0 on first use and kept in the cache."""
    path = dataset_path(recipe)
    if not path.is_file():
        write_d4rl(collect_recipe(recipe), path)
    return path

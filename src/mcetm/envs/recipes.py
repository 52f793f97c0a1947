"""From a recipe or a list of policy names to a collected dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mcetm.data.d4rl import write_d4rl
from mcetm.data.transitions import Transitions
from mcetm.envs.collection import Share, collect
from mcetm.envs.controllers import CONTROLLERS
from mcetm.errors import UserError
from mcetm.files import cache_folder, find_file
from mcetm.tasks.datasets import Part, Recipe
from mcetm.tasks.policy import Policy, TanhGaussianPolicy, UniformPolicy, read_policy
from mcetm.tasks.registry import Task, get_task, suggestion

_CACHE_VERSION = 1
"""Part of a cached dataset's name; raise it when collection itself changes what it yields."""


def collect_recipe(
    recipe: Recipe, *, steps: int | None = None, seed: int = 0, processes: int | None = None
) -> Transitions:
    """Collect a named dataset, at its own size or another."""
    task = get_task(recipe.task)
    policies = _recipe_policies(recipe, task)
    total = steps or recipe.transitions
    if total < len(recipe.parts):
        raise UserError(f"{recipe.name} has {len(recipe.parts)} parts, so {total} steps are too few.")
    weights = [part.weight for part in recipe.parts]
    ends = [round(total * sum(weights[: i + 1]) / sum(weights)) for i in range(len(weights))]
    shares = [
        Share(tuple(policies[name] for name in part.policies), end - start)
        for part, start, end in zip(recipe.parts, [0, *ends], ends, strict=False)
    ]
    return collect(
        task, shares, seed=seed, processes=processes, label=f"collecting {recipe.name}", note=recipe.note
    )


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


def make_recipe(task: str, policies: Sequence[str], *, mix: bool, deterministic: bool = False) -> Recipe:
    """A recipe from names typed by a user: equal shares one after the other, or one mixture."""
    names = tuple(policies)
    parts = (Part(names),) if mix else tuple(Part((name,)) for name in names)
    return Recipe(name=task, task=task, transitions=0, parts=parts, deterministic=deterministic)


def _recipe_policies(recipe: Recipe, task: Task) -> dict[str, Policy]:
    """Every policy a recipe names; all that are missing are named in one sentence."""
    found: dict[str, Policy] = {}
    missing: list[str] = []
    for name in dict.fromkeys(name for part in recipe.parts for name in part.policies):
        policy = find_policy(name, task)
        if policy is None:
            missing.append(name)
        elif recipe.deterministic and isinstance(policy, TanhGaussianPolicy):
            found[name] = replace(policy, deterministic=True)
        else:
            found[name] = policy
    if missing:
        raise UserError(_missing_sentence(recipe, missing))
    return found


def find_policy(name: str, task: Task) -> Policy | None:
    """A policy by name or by file; None for a known weight file that is not at hand."""
    if name == "uniform":
        return UniformPolicy(task.action_low, task.action_high)
    if name in CONTROLLERS:
        purpose, make = CONTROLLERS[name]
        if purpose != task.name:
            raise UserError(f"The controller '{name}' is for task '{purpose}', not for '{task.name}'.")
        return make()
    path = _policy_file(name)
    if path is None:
        return None
    policy = read_policy(path)
    if (policy.obs_dim, policy.action_dim) != (task.obs_dim, task.action_dim):
        raise UserError(
            f"The policy in {path} takes {policy.obs_dim} observations and gives {policy.action_dim} "
            f"actions, but task '{task.name}' has {task.obs_dim} and {task.action_dim}."
        )
    return policy.within(task.action_low, task.action_high)


def _policy_file(name: str) -> Path | None:
    """Where a policy's weights lie: a path, a file in a data folder, or inside D4RL's own dataset."""
    if Path(name).suffix:
        if not Path(name).is_file():
            raise UserError(f"There is no policy file {name}.")
        return Path(name)
    if not any(mark in name for mark in ("_d4rl_", "_snapshot_")):
        raise UserError(f"Unknown policy '{name}'{suggestion(name, ['uniform', *CONTROLLERS])}")
    found = find_file("policies", [f"{name}.npz"])
    if found is None and name.endswith("_d4rl_medium_v2"):
        found = find_file("d4rl", [f"{name.split('_')[0]}_medium-v2.hdf5"])
    return found


def _missing_sentence(recipe: Recipe, missing: list[str]) -> str:
    folder = cache_folder() / "policies"
    files = ", ".join(f"{name}.npz" for name in missing)
    origins = []
    if any("_d4rl_" in name for name in missing):
        origins.append(
            f"the medium policy is inside D4RL's {recipe.task}-medium-v2, which may take its place"
        )
    if any("_snapshot_" in name for name in missing):
        origins.append("the snapshots come from the deep OPE benchmark, github.com/google-research/deep_ope")
    return (
        f"{recipe.name} cannot be collected without {files}: put them into {folder} or into a folder named "
        f"in MCETM_DATA ({'; '.join(origins)})."
    )

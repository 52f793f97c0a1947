"""Who acts: behaviour policies by name or by file, and what to say when one is not at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mcetm.envs.controllers import CONTROLLERS
from mcetm.errors import UserError
from mcetm.files import cache_folder, find_file
from mcetm.tasks.policy import BehaviourPolicy, UniformPolicy, read_policy
from mcetm.tasks.registry import Task, suggestion


def find_policies(
    names: list[str], task: Task, *, wanted_for: str, deterministic: bool = False
) -> dict[str, BehaviourPolicy]:
    """Every policy of these names; those that are not at hand are all named in one sentence."""
    found = {name: find_policy(name, task, deterministic=deterministic) for name in names}
    missing = [name for name, policy in found.items() if policy is None]
    if missing:
        raise UserError(_missing_sentence(wanted_for, task, missing))
    return {name: policy for name, policy in found.items() if policy is not None}


def find_policy(name: str, task: Task, *, deterministic: bool = False) -> BehaviourPolicy | None:
    """`uniform`, an analytic controller, a weight file; None for a known weight file that is not at hand."""
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
    return replace(policy.within(task.action_low, task.action_high), deterministic=deterministic)


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


def _missing_sentence(wanted_for: str, task: Task, missing: list[str]) -> str:
    files = ", ".join(f"{name}.npz" for name in missing)
    origins = []
    if any("_d4rl_" in name for name in missing):
        origins.append(
            f"the medium policy is also inside D4RL's {task.name}-medium-v2, which may take its place"
        )
    if any("_snapshot_" in name for name in missing):
        origins.append("the snapshots come from the deep OPE benchmark, github.com/google-research/deep_ope")
    return (
        f"{wanted_for} cannot be collected without {files}, to be put into {cache_folder() / 'policies'} or "
        f"into a folder named in MCETM_DATA ({'; '.join(origins)})."
    )

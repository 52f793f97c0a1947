"""Offline reinforcement learning with energy-based transition models that know where they can be trusted.

Names are loaded when they are first used, so that `import mcetm` and `mcetm --help` are instant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcetm.agents.policy import load_policy
    from mcetm.data import Card, DataError, Metadata, Normalizer, Statistics, Transitions, make_card
    from mcetm.envs import collect, load_dataset
    from mcetm.errors import UserError
    from mcetm.tasks import ReferenceScores, Task, get_task, read_policy, register_task

_HOMES = {
    "agents.policy": ("load_policy",),
    "data": ("Card", "DataError", "Metadata", "Normalizer", "Statistics", "Transitions", "make_card"),
    "envs": ("collect", "load_dataset"),
    "errors": ("UserError",),
    "tasks": ("ReferenceScores", "Task", "get_task", "read_policy", "register_task"),
}

__all__ = [
    "Card",
    "DataError",
    "Metadata",
    "Normalizer",
    "ReferenceScores",
    "Statistics",
    "Task",
    "Transitions",
    "UserError",
    "collect",
    "get_task",
    "load_dataset",
    "load_policy",
    "make_card",
    "read_policy",
    "register_task",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from mcetm.versions import version_of

        return version_of("mcetm")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"mcetm.{home}"), name)
    raise AttributeError(f"module 'mcetm' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

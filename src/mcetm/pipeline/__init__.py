"""The main job, end to end: data, models, calibration, policy, evaluation, run folder.

Names are loaded when they are first used: the command line reads the names of algorithms here, without JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcetm.pipeline.config import ModelsConfig, TrainConfig
    from mcetm.pipeline.environment import describe_environment
    from mcetm.pipeline.finished import Finished, read_finished
    from mcetm.pipeline.presets import make_config
    from mcetm.pipeline.train import seeds_of

_HOMES = {
    "config": ("ModelsConfig", "TrainConfig"),
    "environment": ("describe_environment",),
    "finished": ("Finished", "read_finished"),
    "presets": ("make_config",),
    "train": ("seeds_of",),
}

__all__ = [
    "Finished",
    "ModelsConfig",
    "TrainConfig",
    "describe_environment",
    "make_config",
    "read_finished",
    "seeds_of",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"mcetm.pipeline.{home}"), name)
    raise AttributeError(f"module 'mcetm.pipeline' has no attribute '{name}'")

"""The main job, end to end: data, models, calibration, policy, evaluation, run folder.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcetm.pipeline.cell import Cell, CellResult, read_cell, read_cells, run_cell
    from mcetm.pipeline.config import TrainConfig, changed, plain_of, with_steps
    from mcetm.pipeline.environment import describe_environment
    from mcetm.pipeline.finished import Finished, read_finished
    from mcetm.pipeline.lock import BusyError
    from mcetm.pipeline.presets import algorithm_names, make_config
    from mcetm.pipeline.train import seeds_of

_HOMES = {
    "cell": ("Cell", "CellResult", "read_cell", "read_cells", "run_cell"),
    "config": ("TrainConfig", "changed", "plain_of", "with_steps"),
    "environment": ("describe_environment",),
    "finished": ("Finished", "read_finished"),
    "lock": ("BusyError",),
    "presets": ("algorithm_names", "make_config"),
    "train": ("seeds_of",),
}

__all__ = [
    "BusyError",
    "Cell",
    "CellResult",
    "Finished",
    "TrainConfig",
    "algorithm_names",
    "changed",
    "describe_environment",
    "make_config",
    "plain_of",
    "read_cell",
    "read_cells",
    "read_finished",
    "run_cell",
    "seeds_of",
    "with_steps",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"mcetm.pipeline.{home}"), name)
    raise AttributeError(f"module 'mcetm.pipeline' has no attribute '{name}'")

"""The main job, end to end: data, models, calibration, policy, evaluation, run folder.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcetm.pipeline.cell import Cell, run_cell
    from mcetm.pipeline.cell_result import CellResult, read_cell, read_cells
    from mcetm.pipeline.config import TrainConfig, changed, plain_of, with_steps
    from mcetm.pipeline.environment import describe_environment
    from mcetm.pipeline.finished import Finished, read_finished
    from mcetm.pipeline.lock import BusyError
    from mcetm.pipeline.presets import algorithm_names, make_config
    from mcetm.pipeline.sweep.attempt import failures_in
    from mcetm.pipeline.sweep.executors import ExecutorSettings, LocalSettings, usual_executor
    from mcetm.pipeline.sweep.jobs import Planned, shared_name, thinned
    from mcetm.pipeline.sweep.plan import Worlds, check_reach, check_worlds
    from mcetm.pipeline.sweep.run import run_planned
    from mcetm.pipeline.sweep.table import compare_cells
    from mcetm.pipeline.train import seeds_of

_HOMES = {
    "cell": ("Cell", "run_cell"),
    "cell_result": ("CellResult", "read_cell", "read_cells"),
    "config": ("TrainConfig", "changed", "plain_of", "with_steps"),
    "environment": ("describe_environment",),
    "finished": ("Finished", "read_finished"),
    "lock": ("BusyError",),
    "presets": ("algorithm_names", "make_config"),
    "sweep.attempt": ("failures_in",),
    "sweep.executors": ("ExecutorSettings", "LocalSettings", "usual_executor"),
    "sweep.jobs": ("Planned", "shared_name", "thinned"),
    "sweep.plan": ("Worlds", "check_reach", "check_worlds"),
    "sweep.run": ("run_planned",),
    "sweep.table": ("compare_cells",),
    "train": ("seeds_of",),
}

__all__ = [
    "BusyError",
    "Cell",
    "CellResult",
    "ExecutorSettings",
    "Finished",
    "LocalSettings",
    "Planned",
    "TrainConfig",
    "Worlds",
    "algorithm_names",
    "changed",
    "check_reach",
    "check_worlds",
    "compare_cells",
    "describe_environment",
    "failures_in",
    "make_config",
    "plain_of",
    "read_cell",
    "read_cells",
    "read_finished",
    "run_cell",
    "run_planned",
    "seeds_of",
    "shared_name",
    "thinned",
    "usual_executor",
    "with_steps",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"mcetm.pipeline.{home}"), name)
    raise AttributeError(f"module 'mcetm.pipeline' has no attribute '{name}'")

"""Offline reinforcement learning with energy-based transition models that know where they can be trusted.

Names are loaded when they are first used, so that `import mcetm` and `mcetm --help` are instant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcetm.agents import (
        BC,
        COMBO,
        CQL,
        EDAC,
        EMPO,
        IQL,
        MCETM,
        MOBILE,
        MOPO,
        RAMBO,
        SAC,
        TD3,
        TD3BC,
        Agent,
        MOReL,
        Policy,
        Trust,
        load_policy,
    )  # fmt: skip
    from mcetm.data import Card, Columns, DataError, Metadata, Normalizer, Statistics, Transitions, make_card
    from mcetm.dynamics import (
        AnchoredETM,
        DiffusionEnsemble,
        EnergyModel,
        GaussianEnsemble,
        ManifoldETM,
        Samples,
        StandardETM,
        TransitionModel,
        TrustRegion,
        World,
        WorldSettings,
    )  # fmt: skip
    from mcetm.envs import collect, load_dataset
    from mcetm.errors import UserError
    from mcetm.estimates import Estimate, Estimates, EstimateSettings, PolicyEstimates
    from mcetm.evaluation.returns import Evaluation, Evaluations, evaluate
    from mcetm.export import export_energy, export_model
    from mcetm.pipeline.config import TrainConfig
    from mcetm.pipeline.estimate import estimate
    from mcetm.pipeline.fit import fit
    from mcetm.pipeline.loaded import load_run, train
    from mcetm.pipeline.presets import make_config as preset
    from mcetm.tasks import ReferenceScores, Task, get_task, read_policy, register_task

_HOMES = {
    "agents": (
        *("BC", "COMBO", "CQL", "EDAC", "EMPO", "IQL", "MCETM", "MOBILE", "MOPO", "MOReL", "RAMBO", "SAC"),
        *("TD3", "TD3BC", "Agent", "Policy", "Trust", "load_policy"),
    ),
    "data": (
        "Card",
        "Columns",
        "DataError",
        "Metadata",
        "Normalizer",
        "Statistics",
        "Transitions",
        "make_card",
    ),
    "dynamics": (
        *("AnchoredETM", "DiffusionEnsemble", "EnergyModel", "GaussianEnsemble", "ManifoldETM", "Samples"),
        *("StandardETM", "TransitionModel", "TrustRegion", "World", "WorldSettings"),
    ),
    "envs": ("collect", "load_dataset"),
    "errors": ("UserError",),
    "estimates": ("Estimate", "EstimateSettings", "Estimates", "PolicyEstimates"),
    "evaluation.returns": ("Evaluation", "Evaluations", "evaluate"),
    "export": ("export_energy", "export_model"),
    "pipeline.estimate": ("estimate",),
    "pipeline.fit": ("fit",),
    "pipeline": ("TrainConfig",),
    "pipeline.loaded": ("load_run", "train"),
    "tasks": ("ReferenceScores", "Task", "get_task", "read_policy", "register_task"),
}

__all__ = [
    "BC",
    "COMBO",
    "CQL",
    "EDAC",
    "EMPO",
    "IQL",
    "MCETM",
    "MOBILE",
    "MOPO",
    "RAMBO",
    "SAC",
    "TD3",
    "TD3BC",
    "Agent",
    "AnchoredETM",
    "Card",
    "Columns",
    "DataError",
    "DiffusionEnsemble",
    "EnergyModel",
    "Estimate",
    "EstimateSettings",
    "Estimates",
    "Evaluation",
    "Evaluations",
    "GaussianEnsemble",
    "MOReL",
    "ManifoldETM",
    "Metadata",
    "Normalizer",
    "Policy",
    "PolicyEstimates",
    "ReferenceScores",
    "Samples",
    "StandardETM",
    "Statistics",
    "Task",
    "TrainConfig",
    "TransitionModel",
    "Transitions",
    "Trust",
    "TrustRegion",
    "UserError",
    "World",
    "WorldSettings",
    "collect",
    "estimate",
    "evaluate",
    "export_energy",
    "export_model",
    "fit",
    "get_task",
    "load_dataset",
    "load_policy",
    "load_run",
    "make_card",
    "preset",
    "read_policy",
    "register_task",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from mcetm.versions import version_of

        return version_of("mcetm")
    if name == "preset":
        from mcetm.pipeline.presets import make_config

        return make_config
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"mcetm.{home}"), name)
    raise AttributeError(f"module 'mcetm' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

"""Every benchmark by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax

from mcetm.pipeline import describe_environment
from mcetm_experiments.bench.collection import run_collection
from mcetm_experiments.bench.energies import run_energies
from mcetm_experiments.bench.models import run_models
from mcetm_experiments.bench.policy import run_policy
from mcetm_experiments.bench.sampling import run_sampling
from mcetm_experiments.bench.sheet import Sheet, Size
from mcetm_experiments.bench.train import run_train

BENCHMARKS = {
    "sampling": run_sampling,
    "energies": run_energies,
    "policy": run_policy,
    "collection": run_collection,
    "train": run_train,
    "models": run_models,
}


def run_benchmarks(
    names: Sequence[str],
    *,
    size: Size | None = None,
    seconds: float = 100.0,
    algos: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> dict[str, Any]:
    """The results as plain data, with the machine they were found on.

    Sizes are the paper's where there is an accelerator, and small on a CPU, unless `size` says otherwise. A
    benchmark begins no other row after `seconds`.
    """
    chosen: Size = size or ("small" if jax.default_backend() == "cpu" else "full")
    # What another process compiled would make compilation look free.
    jax.config.update("jax_enable_compilation_cache", False)
    # Others at work on the same cores make every figure worse; the reader should know.
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    found = {}
    for name in names:
        sheet = Sheet(chosen, seconds)
        if name == "policy":
            run_policy(sheet, algos, seeds)
        else:
            BENCHMARKS[name](sheet)
        found[name] = sheet.to_dict()
    return {"benchmarks": found, "load_before": load, **describe_environment()}

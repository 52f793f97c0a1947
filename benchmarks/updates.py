"""Updates a second of every algorithm, for one seed and for five in one program, and d3rlpy's beside ours.

    python benchmarks/updates.py [--algos td3bc cql ...] [--python DIR/bin/python] [--record]

The sizes are those of halfcheetah with preset `fast` and random data: what is learned does not change the
time. Rollouts are part of a model-based update; compilation is not. `--python` names an interpreter that has
d3rlpy (see `against_d3rlpy.py`), which is then measured in the same run, one process at a time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np

from mcetm.data.files import write_file
from mcetm.data.transitions import Transitions
from mcetm.pipeline.algorithms import ALGORITHMS
from mcetm.pipeline.config import TrainConfig, changed
from mcetm.pipeline.models import Models, train_models
from mcetm.pipeline.policy import train_policies
from mcetm.pipeline.presets import make_config
from mcetm.tasks import get_task
from record import record

ROWS = 100_000
UNTRAINED = [f"models.{name}.steps=1" for name in ("gaussian", "reward", "energy")]
OUTSIDE = {"td3bc": 2000, "iql": 1000, "cql": 200}
"""Updates with d3rlpy: enough for a rate."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--algos", nargs="+", default=[name for name in ALGORITHMS if name != "bc"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--chunk", type=int, default=1000, help="updates between two looks at the clock")
    parser.add_argument("--python", default=None, help="an interpreter that has d3rlpy")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    log = _log()
    rates: dict[str, Any] = {}
    for algo in given.algos:
        config = _settings(algo, given.chunk)
        models = _models(log, config)
        rates[algo] = {f"{seeds} seeds": _rate(log, models, config, seeds) for seeds in given.seeds}
        print(algo, rates[algo], flush=True)
    outside = {} if given.python is None else _outside(log, given.python)
    device = jax.devices()[0].device_kind
    record("updates", {"device": device, "updates_per_second": rates, "d3rlpy": outside})


def _log() -> Transitions:
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(ROWS, 17))
    over = np.arange(1, ROWS + 1) % 1000 == 0
    action, reward = rng.uniform(-1, 1, (ROWS, 6)), rng.normal(5.0, 1.0, ROWS)
    return Transitions.from_arrays(
        obs, action, reward, obs + rng.normal(size=obs.shape), np.zeros(ROWS, bool), over
    )


def _settings(algo: Any, chunk: int) -> TrainConfig:
    steps = [f"policy.{name}.steps={3 * chunk}" for name in ("sac", "td3", "iql")]
    config = make_config("fast", dataset="halfcheetah-medium", algo=algo)
    # As much imagined for each update whatever the chunk, and RAMBO's generations more often.
    often = config.policy.rollout.every / 1000
    batch = max(1, round(config.policy.rollout.batch * chunk / 1000))
    rollout = [f"policy.rollout.every={round(chunk * often)}", f"policy.rollout.batch={batch}"]
    return changed(
        config, [*UNTRAINED, *steps, *rollout, "policy.bc.steps=1", "models.calibration.rows=1000"]
    )


def _models(log: Transitions, config: TrainConfig) -> Models | None:
    needs = ALGORITHMS[config.algo].needs
    if needs == "log":
        return None
    with TemporaryDirectory() as folder:
        train, holdout = log.split(0.1, seed=0)
        task = get_task("halfcheetah")
        key = jax.random.key(0)
        return train_models(train, holdout, config.models, task, needs={needs}, key=key, folder=Path(folder))


def _rate(log: Transitions, models: Models | None, config: TrainConfig, seeds: int) -> float:
    """Updates a second, each of all seeds."""
    world = None if models is None else models.world(config.algo, config.policy)
    bounds = (-jax.numpy.ones(6), jax.numpy.ones(6))
    with TemporaryDirectory() as folder:
        done = train_policies(
            log,
            world,
            config.algo,
            config.policy,
            bounds,
            None,
            seeds=list(range(seeds)),
            folder=Path(folder),
            label=f"{config.algo}, {seeds} seeds",
        )
    # The first holds the compilation.
    return round(config.policy.rollout.every / min(line["seconds"] for line in done.history[1:]), 1)


def _outside(log: Transitions, python: str) -> dict[str, dict[str, float]]:
    """d3rlpy's rates, on the CPU and on an accelerator if it finds one."""
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.hdf5"
        write_file(log, path)
        for algo, steps in OUTSIDE.items():
            for where in ([], ["--cpu"]):
                script = str(Path(__file__).with_name("outside.py"))
                command = [
                    python,
                    script,
                    str(path),
                    "HalfCheetah-v4",
                    algo,
                    str(steps),
                    "0",
                    "--speed",
                    *where,
                ]
                lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
                line = json.loads(lines.splitlines()[-1])
                found.setdefault(algo, {})[line["device"]] = round(line["rate"], 1)
    return found


if __name__ == "__main__":
    main()

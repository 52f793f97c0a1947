"""TD3+BC, CQL and IQL against d3rlpy's, an independent implementation: same data, same settings, same budget.

    python -m venv DIR && DIR/bin/pip install d3rlpy mujoco imageio
    python benchmarks/against_d3rlpy.py hopper --python DIR/bin/python [--jobs 9] [--record]

d3rlpy's runs are separate processes, several at once; ours are one program for all seeds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mcetm.data.files import write_file
from mcetm.envs import load_dataset
from mcetm.pipeline import make_config, with_steps
from mcetm.pipeline.train import run_training, start_run
from mcetm.tasks import get_task
from record import record

STEPS = {"td3bc": 50_000, "iql": 50_000, "cql": 20_000}


def main() -> None:
    """Train both, and print the scores side by side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["hopper", "halfcheetah", "walker2d"])
    parser.add_argument("--python", required=True, help="an interpreter that has d3rlpy")
    parser.add_argument("--algos", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="d3rlpy processes at once")
    parser.add_argument("--dataset", default=None, help="another log of the same task")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the budget, to try this script")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/against-d3rlpy"), help="what is done stays here"
    )
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    dataset = given.dataset or f"{given.task}-medium"
    log = load_dataset(dataset)
    task = get_task(given.task)
    scores = task.scores
    assert scores is not None  # noqa: S101 (all three have some)
    steps = {algo: int(STEPS[algo] * given.scale) for algo in given.algos}
    given.runs.mkdir(parents=True, exist_ok=True)
    path = given.runs / "log.hdf5"
    write_file(log, path)
    with ThreadPoolExecutor(given.jobs) as threads:

        def outside(work: tuple[str, int]) -> dict[str, Any]:
            algo, seed = work
            found = given.runs / f"{algo}-{seed}.json"
            if found.exists():
                return json.loads(found.read_text())
            command = [given.python, str(Path(__file__).with_name("outside.py")), str(path)]
            command += [str(task.env_id), algo, str(steps[algo]), str(seed)]
            # One core of a CPU is faster than an accelerator for all but CQL's thirty actions a state.
            command += [] if algo == "cql" else ["--cpu"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found.write_text(done.stdout.splitlines()[-1])
            return json.loads(found.read_text())

        # The slowest first.
        works = [
            (algo, seed) for algo in ("cql", "iql", "td3bc") if algo in steps for seed in range(given.seeds)
        ]
        pending = threads.map(outside, works)
        ours = {
            algo: _ours(dataset, algo, count, given.seeds, log, given.runs) for algo, count in steps.items()
        }
        theirs = list(pending)
    result: dict[str, Any] = {}
    for algo in steps:
        lines = [line for line in theirs if line["algo"] == algo]
        score = lambda values: [round(float(scores.normalize(v)), 2) for v in values]  # noqa: E731
        result[algo] = {
            "updates": steps[algo],
            "mcetm": _summary(score(ours[algo])),
            "d3rlpy": _summary(score([float(np.mean(line["returns"])) for line in lines])),
        }
    record(
        "against_d3rlpy",
        {
            "task": given.task,
            "transitions": len(log),
            "device": jax.devices()[0].device_kind,
            "scores": result,
        },
    )


def _ours(dataset: str, algo: Any, steps: int, seeds: int, log: Any, scratch: Path) -> list[float]:
    """Returns of our seeds."""
    config = with_steps(make_config("fast", dataset=dataset, algo=algo, seeds=seeds), steps)
    config = replace(config, evaluation=replace(config.evaluation, every=steps))
    start_run(config, scratch / algo)
    found = run_training(scratch / algo, config, log).outcomes[-1].returns
    return list(found or ())


def _summary(scores: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(scores)), "std": float(np.std(scores, ddof=1)), "scores": scores}


if __name__ == "__main__":
    main()

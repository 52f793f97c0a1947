"""Any algorithms on a locomotion dataset of D4RL's medium policies, beside the published scores.

    python benchmarks/locomotion.py hopper [--algos mcetm mobile mopo ...] [--set SETTING=VALUE ...]

One run folder for each algorithm under `runs/`, so that a stopped benchmark goes on where it was; models that
another run there has finished are shared. Results are added to `benchmarks/results/locomotion-TASK.json`,
each with its commit; `curves.py` draws them. All systems at once: `together.py` and `queues/locomotion.txt`.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import signal
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mcetm.envs import load_dataset
from mcetm.files import write_json
from mcetm.pipeline.config import TrainConfig, changed, read_config
from mcetm.pipeline.environment import describe_host
from mcetm.pipeline.presets import make_config
from mcetm.pipeline.train import Run, results_of, run_training, start_run
from mcetm.tasks import get_task
from record import RESULTS

_COLUMNS = ("cql", "td3bc", "edac", "mopo", "combo", "rambo", "mobile", "empo-official", "mcetm")
_ROWS = {
    "hopper": (61.9, 59.3, 101.6, 62.8, 97.2, 87.0, 106.6, 32.9, 107.0),
    "walker2d": (79.5, 83.7, 92.5, 84.1, 81.9, 84.9, 87.7, 55.4, 92.7),
    "halfcheetah": (46.9, 48.3, 65.9, 73.0, 54.2, 77.9, 74.6, 21.2, 76.9),
}
_IQL = {"hopper": 66.3, "walker2d": 78.3, "halfcheetah": 47.4}
PUBLISHED: dict[str, dict[str, float]] = {
    task: dict(zip(_COLUMNS, row, strict=True)) | {"iql": _IQL[task]} for task, row in _ROWS.items()
}
"""Normalised scores as MC-ETM's paper has them, on D4RL's own data; they measured EMPO's.

IQL is not in that table: its own paper's."""
SEEDS = 3
CURVE = (
    *("step", "return", "q", "target", "spread", "uncertainty", "truncated", "temperature", "entropy"),
    "model_loss",
)
ROLLOUTS = ("rollout_length", "rollout_truncated", "rollout_terminated", "rollout_reward")


def main() -> None:
    """Train what the folders do not hold yet, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=PUBLISHED)
    parser.add_argument("--algos", nargs="+", default=["mcetm", "mobile", "mopo"])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--set", nargs="*", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--dataset", default=None, help="another log of the same task")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--name", default="fast", help="suffix of the run folders")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    dataset = given.dataset or f"{given.task}-medium"
    log = load_dataset(dataset)
    path = given.out / f"locomotion-{given.task}.json"
    given.out.mkdir(parents=True, exist_ok=True)
    # A variant stands beside the algorithm as it is; where models come from does not make one.
    variant = [change for change in given.set if not change.startswith("models_from=")]
    variant += [] if given.dataset is None else [f"dataset={given.dataset}"]
    variant += [] if given.seeds == SEEDS else [f"seeds={given.seeds}"]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a scheduler's stop saves, as Ctrl-C does
    found: dict[str, Any] = {}
    for algo in given.algos:
        folder = given.runs / f"{given.task}-medium-{algo}-{given.name}"
        name = " ".join([algo, *variant])
        if (folder / "results.json").exists() and name in _recorded(path):
            print(f"{name}: done and recorded")
            continue
        config = changed(make_config("fast", dataset=dataset, algo=algo, seeds=given.seeds), given.set)
        if config.models_from is None and (models := _models(given.runs, folder, config, algo, given.name)):
            config = changed(config, [f"models_from={json.dumps(models)}"])
        start_run(config, folder)
        began = time.perf_counter()
        run = run_training(folder, config, log)
        seconds = round(time.perf_counter() - began, 1)
        about = describe_host()
        found[name] = {
            **_outcome(run, config, algo, given.task),
            "seconds": seconds,
            "commit": about["commit"],
        }
        content = {
            "benchmark": "locomotion",
            "dataset": dataset,
            "transitions": len(log),
            "data_score": _score(given.task, run.data_return),
            "seeds": given.seeds,
            "device": jax.devices()[0].device_kind,
            **about,
        }
        with (given.runs / f"{path.stem}.lock").open("w") as lock:  # others may be at the same task
            fcntl.flock(lock, fcntl.LOCK_EX)
            write_json(path, {**content, "algorithms": {**_recorded(path), name: found[name]}})
    for name, result in found.items():
        print(f"{name:8s} {result['score']:6.1f} ± {result['score_std']:.1f}", end="  ")
        print(f"published {result['published']}  {result['seconds']:.0f} s  {result['scores']}")
        diagnosis = result["diagnosis"] or {}  # cloning has no values to look at
        print("   ", {key: np.round(values, 4).tolist() for key, values in diagnosis.items()})


def _recorded(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())["algorithms"] if path.exists() else {}


def _models(runs: Path, folder: Path, config: TrainConfig, algo: str, name: str) -> str | None:
    """A run whose finished models this one can have: the same energy, or the same regressor."""
    if (folder / "config.json").exists():  # it has begun, and stays with what it began with
        return read_config(folder / "config.json").models_from
    if config.model is None:
        return None
    makers = [algo.split("-")[0]] if config.model.has_energy else ["empo", "mcetm"]
    for maker in makers:
        other = runs / folder.name.replace(f"-{algo}-{name}", f"-{maker}-{name}")
        seconds = other / "seconds.json"
        over = json.loads(seconds.read_text()) if other != folder and seconds.exists() else {}
        if "reward" in over:  # trained last, after the model
            return str(other.resolve())
    return None


def _score(task: str, value: float) -> float:
    scores = get_task(task).scores
    return float("nan") if scores is None else round(float(scores.normalize(value)), 2)


def _outcome(run: Run, config: TrainConfig, algo: str, task: str) -> dict[str, Any]:
    """Scores, curves and diagnosis of one algorithm."""
    outcome = run.outcomes[-1]
    scores = [_score(task, value) for value in outcome.returns or ()]
    lines = [line for line in outcome.history if "return" in line]
    # Cloning is evaluated at its end only.
    noted = [name for name in (*CURVE, *ROLLOUTS) if name != "return" and lines and name in lines[0]]
    curve = {name: [_short(line[name]) for line in lines] for name in noted}
    curve["score"] = [[_score(task, value) for value in line["return"]] for line in lines]
    return {
        "score": float(np.mean(scores)),
        "score_std": float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0,
        "scores": scores,
        "published": PUBLISHED[task].get(algo),
        "updates": config.algorithm.updates,
        "published_updates": make_config("paper", dataset=config.dataset, algo=algo).algorithm.updates,
        "policy_seconds": round(sum(line["seconds"] for line in outcome.history), 1),
        "diagnosis": results_of(run)["algorithms"][outcome.name]["diagnosis"],
        "curve": curve,
    }


def _short(value: Any) -> Any:
    return value if isinstance(value, int) else np.round(np.asarray(value, float), 4).tolist()


if __name__ == "__main__":
    main()

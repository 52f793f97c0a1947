"""Folders of finished runs, written by hand, and settings that are trained in no time."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from mcetm import get_task
from mcetm.agents.policy import Policy, numpy_policy
from mcetm.cli import main
from mcetm.nn.actor import Actor
from mcetm.nn.scaling import Scaling
from mcetm.pipeline.config import TrainConfig, changed, plain_of
from mcetm.pipeline.folder import compared_folder
from mcetm.pipeline.presets import make_config

_SMALL = {
    "width": 8,
    "depth": 1,
    "members": 2,
    "elites": 2,
    "critics": 2,
    "count": 2,
    "batch_size": 16,
    "latent_dim": 2,
    "autoencoder_width": 8,
    "autoencoder_depth": 1,
    "autoencoder_steps": 20,
    "folds": 1,
    "sampler_steps": 2,
    "samples": 2,
    "rows": 50,
    "batch": 8,
    "horizon": 2,
    "every": 10,
    "retain": 2,
    "parallel": 8,
    "episodes": 2,
}
"""Whatever has such a setting has it so small."""

NAMES = {"mcetm": "MC-ETM", "mobile": "MOBILE", "mopo": "MOPO", "bc": "behaviour cloning"}


def write_run(
    folder: Path,
    scores: Sequence[float],
    *,
    algo: Any = "mcetm",
    dataset: str = "hopper-medium-v2",
    task: str | None = "hopper",
    seed: int = 0,
    steps: int = 300,
    compared: Mapping[str, Sequence[float]] | None = None,
    checksum: str | None = None,
) -> Path:
    """A finished run whose seeds reached these scores (these returns where the task has no references)."""
    seeds = list(range(seed, seed + len(scores)))
    references = None if task is None else get_task(task).scores

    def raw(score: float) -> float:
        if references is None:
            return float(score)
        return references.random + score / 100 * (references.expert - references.random)

    folder.mkdir(parents=True)
    config = make_config("quick", dataset=dataset, algo=algo, seeds=len(scores), seed=seed, task=task)
    (folder / "config.json").write_text(json.dumps(plain_of(config)))
    algorithms: dict[str, Any] = {}
    for name, values in {**(compared or {}), NAMES[algo]: scores}.items():
        place = folder if name == NAMES[algo] else compared_folder(folder, name)
        place.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "step": step,
                **({} if "cloning" in name else {"return": [raw(v) * step / steps for v in values]}),
            }
            for step in (steps // 3, 2 * steps // 3, steps)
        ]
        (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        score = None if references is None else sum(values) / len(values)
        algorithms[name] = {"returns": [raw(v) for v in values], "score": score}
    results = {"dataset": dataset, "data_return": raw(20), "seeds": seeds, "algorithms": algorithms}
    (folder / "results.json").write_text(json.dumps(results))
    if checksum is not None:
        (folder / "environment.json").write_text(json.dumps({"dataset_checksum": checksum * 64}))
    return folder


def write_policy(folder: Path, task: str) -> Path:
    """An untrained policy of pendulum's size, as a run leaves it."""
    actor = Actor(
        Scaling(jnp.zeros(3), jnp.ones(3)), jnp.array([-2.0]), jnp.array([2.0]), key=jax.random.key(0)
    )
    Policy(numpy_policy(actor), {"task": task}).save(folder)
    return folder


def two_by_two(folder: Path) -> list[Path]:
    """Two algorithms on two datasets, five seeds each; MC-ETM wins on hopper, on walker2d there is a tie."""
    return [
        write_run(folder / "a", [60, 62, 64, 66, 68]),
        write_run(folder / "b", [50, 52, 54, 56, 58], algo="mobile"),
        write_run(folder / "c", [80, 82, 84, 86, 88], dataset="walker2d-medium-v2", task="walker2d"),
        write_run(
            folder / "d", [80, 82, 84, 86, 88], algo="mobile", dataset="walker2d-medium-v2", task="walker2d"
        ),
    ]


def run_compare(*arguments: object) -> int:
    """`mcetm compare` with these arguments."""
    return main(["compare", *(str(a) for a in arguments)])


def small_settings(config: TrainConfig) -> list[str]:
    """Changes, as `--set` takes them, that make the settings small."""
    plain, found = plain_of(config), []

    def visit(content: dict[str, Any], place: str) -> None:
        for name, value in content.items():
            path = f"{place}{name}"
            if isinstance(value, dict):
                visit(value, f"{path}.")
            elif name == "steps":
                # Of a chain, or of a training.
                found.append(f"{path}={2 if 'gradient_clip' in content else 20}")
            elif name in _SMALL:
                found.append(f"{path}={_SMALL[name]}")

    for part in ("model", "world", "algorithm", "evaluation"):
        visit(plain[part] or {}, f"{part}.")
    return found


def small_config(dataset: str = "pendulum-mixed", *changes: str, **options: Any) -> TrainConfig:
    """A run of seconds; `options` are those of `make_config`, and there are no baselines."""
    config = make_config("quick", **{"dataset": dataset, "seeds": 2, **options})
    return changed(config, ["baselines=[]", *small_settings(config), *changes])

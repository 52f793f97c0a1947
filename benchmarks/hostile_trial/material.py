"""Good files and finished runs, to be spoilt."""

from __future__ import annotations

import csv
from pathlib import Path

import h5py
import numpy as np

import mcetm
from mcetm.cli import main
from mcetm.training import Saving

BC = ("algorithm.width=8", "algorithm.depth=1", "algorithm.steps=200", "algorithm.batch_size=8")
EVALUATED = ("evaluation.episodes=1",)
MOPO = (
    *("model.members=2", "model.elites=2", "model.width=8", "model.steps=40", "model.batch_size=8"),
    *("world.reward.width=8", "world.reward.steps=40", "world.calibration.rows=50"),
    *("world.pairs.steps=40", "world.pairs.width=8", "world.pairs.autoencoder_steps=40"),
    *("algorithm.learner.width=8", "algorithm.learner.steps=40", "algorithm.learner.batch_size=8"),
    *("algorithm.rollout.batch=8", "algorithm.rollout.every=10", "algorithm.rollout.horizon=2"),
)
ESTIMATES = (
    *('estimators=["fqe"]', "fqe.steps=20", "fqe.replicas=2", "fqe.width=8", "fqe.batch_size=16"),
    *("model.steps=20", "model.width=8", "model.members=2", "model.elites=2", "horizon=20"),
    *("world.reward.steps=20", "world.reward.width=8", "world.pairs.steps=20", "world.pairs.width=8"),
    *("world.pairs.autoencoder_steps=20", "world.pairs.autoencoder_width=8", "world.calibration.rows=50"),
)

_SWEEP = """logs = ["LOG"]
task = "pendulum"
seeds = 1
steps = 5
episodes = 1
[[systems]]
algorithm = "bc"
set = ["algorithm.width=4", "algorithm.depth=1", "evaluation.episodes=1"]
"""


def table_rows() -> list[dict[str, object]]:
    """A table with names of its own, three batches of twelve rows."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for step in range(36):
        rows.append(
            {
                "when": f"2024-01-0{1 + step // 12} 06:{step % 12:02d}:00",
                "batch": f"B{step // 12}",
                "level": round(float(rng.normal()), 4),
                "flow": round(float(rng.normal()), 4),
                "pump": round(float(rng.uniform()), 4),
                "cost": round(float(rng.uniform()), 4),
                "trip": int(step % 12 == 11),
            }
        )
    return rows


def write_csv(path: Path, rows: list[dict[str, object]]) -> Path:
    """Rows as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def make_material(folder: Path) -> None:
    """Logs of every kind; a run without a model, one with, and one that was not finished."""
    folder.mkdir(parents=True)
    log = mcetm.collect("pendulum", 400, "uniform", processes=1)
    for suffix in (".npz", ".hdf5"):
        log.save(folder / f"log{suffix}")
    few = {name: getattr(log, name)[:60] for name in ("obs", "action", "reward")}
    np.savez(folder / "plain.npz", **few)
    with h5py.File(folder / "d4rl.hdf5", "w") as file:
        file["observations"], file["actions"], file["rewards"] = few["obs"], few["action"], few["reward"]
        file["terminals"], file["timeouts"] = np.zeros(60, bool), np.arange(60) % 20 == 19
    np.savez(folder / "one.npz", obs=np.zeros((1, 3), np.float32), action=np.zeros((1, 1), np.float32))
    write_csv(folder / "plant.csv", table_rows())
    usual: list[dict[str, object]] = [
        {
            "obs_0": r["level"],
            "obs_1": r["flow"],
            "action_0": r["pump"],
            "reward": r["cost"],
            "episode": r["batch"],
        }
        for r in table_rows()
    ]
    write_csv(folder / "usual.csv", usual)
    pause = Saving.pause
    Saving.pause = lambda self, cost: 0.0
    try:
        _train(folder, "bc", "bc", *BC)
        _train(folder, "mopo", "mopo", *MOPO)
    finally:
        Saving.pause = pause
    assert main(["estimate", str(folder / "bc"), "--out", str(folder / "drawn"), "--set", *ESTIMATES]) == 0
    assert main(["select", str(folder / "bc"), "--budget", "5", "--out", str(folder / "select")]) == 0
    plan = folder / "sweep.toml"
    plan.write_text(_SWEEP.replace("LOG", str(folder / "log.npz")))
    assert main(["sweep", str(plan), "--out", str(folder / "sweep")]) == 0


def _train(folder: Path, name: str, algo: str, *settings: str) -> None:
    options = f"--dataset {folder / 'log.npz'} --algo {algo} --seeds 2 --out {folder / name} --set"
    assert main(["train", *options.split(), *EVALUATED, *settings]) == 0

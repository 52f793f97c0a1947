"""How far ahead a state can be known at all: the simulator beside itself, moved as little as a model errs.

    python benchmarks/predictability.py hopper halfcheetah walker2d [--data DIR] [--starts 500] [--record]

Windows and measure are those of `mcetm study rollouts --preset fast`, but the ground truth is the simulator
from the start of each window with the log's actions. Beside it runs the simulator from a start that is moved
by noise, or with noise after every step, of a mean absolute size (in spreads of the states) as accurate
models err in one step.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.data.normalize import Statistics
from mcetm.envs.physics import mujoco_env, states_of
from mcetm.tasks.registry import Task, get_task
from mcetm_experiments.rollouts.study import HORIZONS, PRESETS, some_windows
from mcetm_experiments.shared.openloop import Windows
from record import record

LEVEL = "medium-expert"
SIZES = {"hopper": 3e-4, "halfcheetah": 8e-3, "walker2d": 3e-3}
"""Median one-step errors of a Gaussian ensemble on that level (docs/research/studies/rollouts.md)."""


def main() -> None:
    """Simulate, and print the median differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="+", choices=SIZES)
    parser.add_argument(
        "--data", type=Path, default=Path("studies/rollouts/data"), help="where logs are kept"
    )
    parser.add_argument("--starts", type=int, default=500)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    found = {task: predictability(task, given.data, given.starts) for task in given.tasks}
    for task, ways in found.items():
        for way, medians in ways.items():
            print(f"{task:12} {way:22}", *(f"{value:9.3g}" for value in medians))
    record("predictability", {"level": LEVEL, "starts": given.starts, "horizons": HORIZONS, **found})


def predictability(name: str, folder: Path, starts: int) -> dict[str, list[float]]:
    """Medians over windows at the study's horizons, by size of the noise and when it comes."""
    task, logs = get_task(name), PRESETS["fast"]().logs
    test = logs.divide(logs.load(name, LEVEL, folder))[1]
    windows, spread = some_windows(test, max(HORIZONS), starts, seed=0), Statistics.of(test).obs.std
    ground_truth = simulate(task, windows, 0.0 * spread, every_step=False)
    found = {}
    for size in (1e-6, 0.1 * SIZES[name], SIZES[name]):
        for every_step in (False, True):
            # The mean absolute value of a Gaussian is 0.8 of its spread.
            away = (
                simulate(task, windows, np.sqrt(np.pi / 2) * size * spread, every_step=every_step)
                - ground_truth
            )
            medians = np.median((np.abs(away) / spread).mean(axis=-1), axis=0)
            at = "after every step" if every_step else "at the start"
            found[f"{size:.0e} {at}"] = [float(medians[h - 1]) for h in HORIZONS]
    return found


def simulate(task: Task, windows: Windows, noise: np.ndarray, *, every_step: bool) -> np.ndarray:
    """Observations after every step of every window, with noise on the first state or on all."""
    env: Any = mujoco_env(task)
    rng = np.random.default_rng(0)
    positions, velocities = states_of(task, np.asarray(windows.start))
    seen = []
    for position, velocity, actions in zip(positions, velocities, np.asarray(windows.action), strict=True):
        env.reset(seed=0)
        env.set_state(position, velocity)
        if not every_step:
            move(env, noise, rng)
        row = []
        for action in actions:
            row.append(env.step(action)[0])
            if every_step:
                move(env, noise, rng)
                row[-1] = env._get_obs()
        seen.append(row)
    env.close()
    return np.asarray(seen)


def move(env: Any, noise: np.ndarray, rng: np.random.Generator) -> None:
    """Add noise to all positions that are seen, which is all but the distance, and to all velocities."""
    away = np.concatenate([[0.0], noise * rng.standard_normal(noise.shape)])
    env.set_state(env.data.qpos + away[: env.model.nq], env.data.qvel + away[env.model.nq :])


if __name__ == "__main__":
    main()

"""Collection against a plain Gymnasium loop in one process, both with a 256 × 256 policy.

The plain loop is what one writes first: one environment, one policy evaluation per step, rows in lists. Rates
include everything (starting processes, gathering, validating). "Copies" is the same plain loop run once per
core at the same time, with nothing shared: what the machine's cores give together, which on virtual cores is
less than their number. The policy's weights are random unless MCETM_DATA has D4RL's medium policies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from mcetm.envs import available_cores, collect, find_policy, make_env
from mcetm.tasks import TanhGaussianPolicy, Task, get_task
from mcetm_experiments.bench.clock import Spread, clock
from mcetm_experiments.bench.sheet import Sheet, Timed

_TASKS = ("halfcheetah", "hopper", "walker2d")


def run_collection(sheet: Sheet) -> None:
    """The three locomotion tasks."""
    cores = available_cores()
    plain_steps, steps = (20_000, 100_000 * cores) if sheet.full else (10_000, 50_000 * cores)
    for name in _TASKS:
        task, policy = get_task(name), medium_policy(get_task(name))
        alone = sheet.row(
            name,
            "plain loop",
            lambda t=task, p=policy: _plain(t, p, plain_steps, repeats=3 if sheet.full else 2),
        )

        def against(rate: float, alone: Timed | None = alone) -> dict[str, float]:
            if alone is None:
                return {"steps/s": rate}
            ratio = rate / alone.figures["steps/s"]
            return {"steps/s": rate, "times the plain loop": ratio, "per core": ratio / cores}

        def ours(task: Task = task, policy: TanhGaussianPolicy = policy) -> Timed:
            seconds = clock(lambda: collect(task, steps, policy), repeats=2, warm=True)
            return Timed(seconds, None, against(steps / seconds.median))

        def copies(name: str = name) -> Timed:
            rate = _copies_rate(name, plain_steps, cores)
            return Timed(Spread.of([cores * plain_steps / rate]), None, against(rate))

        sheet.row(name, f"`collect`, {steps:,} steps", ours)
        sheet.row(name, f"{cores} copies of the plain loop", copies)


def medium_policy(task: Task) -> TanhGaussianPolicy:
    """D4RL's, or one of the same size with random weights."""
    found = find_policy(f"{task.name}_d4rl_medium_v2", task)
    if isinstance(found, TanhGaussianPolicy):
        return found
    rng = np.random.default_rng(0)
    shapes = {"fc0": (256, task.obs_dim), "fc1": (256, 256), "last_fc": (task.action_dim, 256)}
    shapes["last_fc_log_std"] = shapes["last_fc"]
    arrays = {f"{name}/weight": 0.05 * rng.normal(size=shape) for name, shape in shapes.items()}
    arrays |= {f"{name}/bias": np.zeros(shape[0]) for name, shape in shapes.items()}
    return TanhGaussianPolicy.from_arrays(arrays, source="random weights")


def plain_seconds(task: Task, policy: TanhGaussianPolicy, steps: int) -> float:
    """One environment, one step after the other."""
    env = make_env(task.env_id, task.env_kwargs)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    rows: list[tuple[Any, ...]] = []
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        action = policy.sample(obs[None].astype(np.float32), rng)[0]
        following, reward, terminated, truncated, _ = env.step(action)
        data = env.unwrapped.data
        rows.append(
            (obs, action, reward, following, terminated, truncated, data.qpos.copy(), data.qvel.copy())
        )
        obs = env.reset()[0] if terminated or truncated else following
    _ = [np.array(column) for column in zip(*rows, strict=True)]
    seconds = time.perf_counter() - start
    env.close()
    return seconds


def _plain(task: Task, policy: TanhGaussianPolicy, steps: int, *, repeats: int) -> Timed:
    seconds = Spread.of([plain_seconds(task, policy, steps) for _ in range(repeats)])
    return Timed(seconds, None, {"steps/s": steps / seconds.median})


_COPY = """
import sys
from mcetm_experiments.bench.collection import medium_policy, plain_seconds
from mcetm.tasks import get_task
task, steps = get_task(sys.argv[1]), int(sys.argv[2])
print(steps / plain_seconds(task, medium_policy(task), steps))
"""


def _copies_rate(name: str, steps: int, copies: int) -> float:
    """The plain loop in as many processes as there are cores, one thread each."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", _COPY, name, str(steps)]
    processes = [
        subprocess.Popen(  # noqa: S603 (our own interpreter and script)
            command, stdout=subprocess.PIPE, env={**os.environ, **single}, text=True
        )
        for _ in range(copies)
    ]
    return sum(float(process.communicate()[0]) for process in processes)

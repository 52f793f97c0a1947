"""Collection against a plain Gymnasium loop in one process, both with a 256×256 policy.

The plain loop is what one writes first: one environment, one policy evaluation per step, rows in
lists. Figures are steps per second with everything included (starting processes, gathering, validating),
and the ratio between the two. "Copies" is the same plain loop run once per core at the same time, with
nothing shared: what the machine's cores give together, which on virtual cores is less than their number.
The policy's weights are random unless MCETM_DATA has D4RL's medium policies.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

from mcetm.envs import collect
from mcetm.envs.behaviour import find_policy
from mcetm.envs.collection import available_cores
from mcetm.envs.simulate import make_env
from mcetm.tasks import TanhGaussianPolicy, Task, get_task
from record import record

PLAIN_STEPS = 20_000


def main() -> None:
    """Time every MuJoCo task; `--million` also collects a whole million of HalfCheetah."""
    cores = available_cores()
    rows = {}
    for name in ("halfcheetah", "hopper", "walker2d"):
        task, policy = get_task(name), _policy(get_task(name))
        # The plain loop before, between and after: its speed varies with what else the machine does.
        plain, parallel = [_plain_rate(task, policy)], []
        for _ in range(2):
            parallel.append(_collect_rate(task, policy, 100_000 * cores))
            plain.append(_plain_rate(task, policy))
        plain, parallel = statistics.median(plain), statistics.mean(parallel)
        copies = _copies_rate(name, cores)
        rows[name] = {
            "plain_steps_per_second": round(plain),
            "collect_steps_per_second": round(parallel),
            "ratio": round(parallel / plain, 2),
            "ratio_per_core": round(parallel / plain / cores, 2),
            "copies_steps_per_second": round(copies),
            "ratio_to_copies": round(parallel / copies, 2),
        }
    result: dict[str, Any] = {"tasks": rows}
    if "--million" in sys.argv:
        task = get_task("halfcheetah")
        rate = _collect_rate(task, _policy(task), 1_000_000)
        result["halfcheetah_million_seconds"] = round(1_000_000 / rate, 1)
    record("collect", result)


def _policy(task: Task) -> TanhGaussianPolicy:
    found = find_policy(f"{task.name}_d4rl_medium_v2", task)
    if isinstance(found, TanhGaussianPolicy):
        return found
    rng = np.random.default_rng(0)
    shapes = {"fc0": (256, task.obs_dim), "fc1": (256, 256), "last_fc": (task.action_dim, 256)}
    shapes["last_fc_log_std"] = shapes["last_fc"]
    arrays = {f"{name}/weight": 0.05 * rng.normal(size=shape) for name, shape in shapes.items()}
    arrays |= {f"{name}/bias": np.zeros(shape[0]) for name, shape in shapes.items()}
    return TanhGaussianPolicy.from_arrays(arrays, source="random weights")


def _plain_rate(task: Task, policy: TanhGaussianPolicy) -> float:
    env = make_env(task.env_id, task.env_kwargs)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    rows: list[tuple[Any, ...]] = []
    obs, _ = env.reset(seed=0)
    for _ in range(PLAIN_STEPS):
        action = policy.sample(obs[None].astype(np.float32), rng)[0]
        following, reward, terminated, truncated, _ = env.step(action)
        data = env.unwrapped.data
        rows.append(
            (obs, action, reward, following, terminated, truncated, data.qpos.copy(), data.qvel.copy())
        )
        obs = env.reset()[0] if terminated or truncated else following
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    seconds = time.perf_counter() - start
    env.close()
    return len(columns[0]) / seconds


def _copies_rate(name: str, copies: int) -> float:
    """The plain loop in as many processes as there are cores, one thread each."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--plain", name]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **single}, text=True)
        for _ in range(copies)
    ]
    return sum(float(process.communicate()[0]) for process in processes)


def _collect_rate(task: Task, policy: TanhGaussianPolicy, steps: int) -> float:
    start = time.perf_counter()
    data = collect(task, steps, policy)
    return len(data) / (time.perf_counter() - start)


if __name__ == "__main__":
    if "--plain" in sys.argv:
        chosen = get_task(sys.argv[-1])
        print(_plain_rate(chosen, _policy(chosen)))
    else:
        main()

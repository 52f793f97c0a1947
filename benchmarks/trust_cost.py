"""What `policy.trust` costs beside the bare policy, measured by turns in one process.

    OPENBLAS_NUM_THREADS=1 python benchmarks/trust_cost.py RUN [--record]

RUN is a run whose policies learned in a world. CPU time of a call with one observation, and with a thousand.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mcetm import load_policy
from record import record

ROUNDS = 40
ROWS = {"one": (1, 400), "thousand": (1000, 5)}
"""Observations of a call, and calls of a round."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    policy = load_policy(given.run, seed=0)
    width, actions = policy.network.obs_dim, policy.network.action_dim
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {"obs": width, "actions": actions, "algorithm": policy.about.get("algorithm")}
    for name, (rows, calls) in ROWS.items():
        obs = rng.normal(size=(rows, width)).astype(np.float32)
        obs = obs[0] if rows == 1 else obs
        still = np.zeros(actions, np.float32)
        jobs: dict[str, Callable[[], Any]] = {
            "policy": lambda obs=obs: policy(obs),
            "trust": lambda obs=obs: policy.trust(obs),
            "fallback": lambda obs=obs, still=still: policy(obs, fallback=still),
        }
        seconds: dict[str, list[float]] = {job: [] for job in jobs}
        for _ in range(ROUNDS):
            for job, call in jobs.items():
                began = time.process_time()
                for _ in range(calls):
                    call()
                seconds[job].append((time.process_time() - began) / calls)
        found = {job: 1e6 * float(np.median(some)) for job, some in seconds.items()}
        ratios = {
            job: float(np.median(np.array(seconds[job]) / np.array(seconds["policy"])))
            for job in ("trust", "fallback")
        }
        result[name] = {"microseconds": found, "times_the_policy": ratios}
    record("trust_cost", result)


if __name__ == "__main__":
    main()

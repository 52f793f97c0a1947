"""Where the time of policy optimisation goes on a GPU: its kernels by kind, and how long it waits for none.

    python benchmarks/timeline.py td3bc cql mcetm [--seeds 1] [--size full]

The work is that of `mcetm bench policy`: after a warm-up, a chunk of updates and its rollouts, profiled.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax

from mcetm_experiments.bench.policy import prepare
from mcetm_experiments.bench.subjects import random_log
from record import record

KINDS = (
    ("matrix products", ("gemm", "cutlass", "nvjet", "dot", "xmma")),
    ("random numbers", ("threefry", "rng", "random")),
    ("copies", ("copy", "memcpy", "Memcpy", "transpose", "concatenate")),
    ("gather and scatter", ("gather", "scatter", "dynamic")),
    ("reductions", ("reduce",)),
    ("element by element", ("fusion",)),
)


def main() -> None:
    """Trace each algorithm and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("algos", nargs="+")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--most", type=int, default=12, help="kernels to name")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    log = random_log(100_000 if given.size == "full" else 20_000)
    found = {}
    for algo in given.algos:
        stage, agents = prepare(log, algo, seeds=given.seeds, full=given.size == "full")
        agents = stage.train(agents, steps=2 * stage.chunk).state
        with TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                began = time.perf_counter()
                jax.block_until_ready(stage.train(agents, steps=stage.chunk).state)
                seconds = time.perf_counter() - began
            found[algo] = {
                "seconds": round(seconds, 4),
                "updates": stage.chunk,
                **_kernels(folder, given.most),
            }
        print(algo, json.dumps(found[algo], indent=1), flush=True)
    record("timeline", {"device": jax.devices()[0].device_kind, "seeds": given.seeds, "algorithms": found})


def _kernels(folder: str, most: int) -> dict[str, Any]:
    """Busy time of the device, by kind and of the kernels that take most of it."""
    path = next(Path(folder).rglob("*.xplane.pb"))
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    spans = []
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        if "/device:GPU" not in plane.name:
            continue
        for line in plane.lines:
            if "Stream" not in line.name:
                continue
            for event in line.events:
                times[event.name] += int(event.duration_ns)
                counts[event.name] += 1
                spans.append((event.start_ns, event.end_ns))
    kinds: dict[str, float] = defaultdict(float)
    for name, nanoseconds in times.items():
        kind = next((kind for kind, words in KINDS if any(word in name for word in words)), "other")
        kinds[kind] += nanoseconds / 1e6
    return {
        "busy_ms": round(_covered(spans) / 1e6, 2),
        "kernels": sum(counts.values()),
        "ms_by_kind": {kind: round(value, 2) for kind, value in sorted(kinds.items(), key=lambda k: -k[1])},
        "most": [
            {"kernel": name[:90], "ms": round(value / 1e6, 2), "times": counts[name]}
            for name, value in times.most_common(most)
        ],
    }


def _covered(spans: list[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, until = 0.0, 0.0
    for start, end in sorted(spans):
        if end > until:
            total += end - max(start, until)
            until = end
    return total


if __name__ == "__main__":
    main()

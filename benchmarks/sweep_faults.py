"""A sweep on a real Ray cluster that loses a node, its head and a disk: is anything lost, or done twice?

    python benchmarks/sweep_faults.py [--seconds 20] [--executor ray|slurm|real-slurm]

With `slurm`, cells are jobs of submitit's local stand-in whose time limit is too short for them: they save,
requeue and go on. With `real-slurm` they are jobs of the cluster of this machine, two minutes each, of which
it takes 40 s or more to save and go; the cluster waits two minutes before it begins a requeued job again.
With `ray`, every node is processes of its own on this machine: a head without cores, and
workers that train one cell at a time. One sweep is undisturbed. In the other

- one worker sees a disk of its own that is full (as root: a small tmpfs in its own mount namespace),
- one cell fails by itself,
- a worker is killed while it trains, and another takes its place,
- the head is killed with all that is left, and begins anew with new workers.

At the end, every result must be that of the undisturbed sweep bit for bit, the tables must be the same file,
no finished cell may have been begun again, and what was killed must have gone on from a checkpoint. Cells
sleep between chunks, so that they take long enough to be killed and leave the machine in peace.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mcetm
from clusters import SLOWLY, Cluster, descendants
from record import record

PLAN = """
title = "Faults"
logs = ["{log}"]
seeds = 2
steps = {steps}
episodes = 2
task = "pendulum"
set = ["evaluation.episodes=1", "algorithm.width=8", "algorithm.depth=1", "algorithm.batch_size=8"]
[[systems]]
algorithm = "bc"
grid = {{"algorithm.learning_rate" = [0.001, 0.002, 0.003, 0.004, 0.005, 0.006]}}
[[systems]]
algorithm = "bc"
label = "diverges"
set = ["algorithm.learning_rate=1e38"]
[executor]
name = "ray"
address = "127.0.0.1:{port}"
"""

_CHUNKS = 20


class Sweep:
    """`mcetm sweep` as a process, and what can be seen of it from outside."""

    def __init__(self, plan: Path, out: Path, *options: str) -> None:
        self.out = out
        command = [sys.executable, "-m", "mcetm", "sweep", str(plan), "--out", str(out), *options]
        self._log = out.with_suffix(".log")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_for(self, what: Callable[[], bool], words: str, seconds: float = 600) -> None:
        """Until something is so."""
        deadline = time.monotonic() + seconds
        while not what():
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"waiting for {words}, and it did not come:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.2)
        print(f"  {words}", flush=True)

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def finished(self) -> dict[str, tuple[bytes, int]]:
        """The results that there are, and how often their cells were begun."""
        return {name: (content, len(self.begun(Path(name).stem))) for name, content in self.done.items()}

    @property
    def done(self) -> dict[str, bytes]:
        """Results by name, as they are in their files."""
        return {path.name: path.read_bytes() for path in (self.out / "cells").glob("*.json")}

    def training(self) -> list[str]:
        """Cells that have a checkpoint and no result."""
        found = {path.parents[1].name for path in self.out.glob("runs/*/checkpoints/*")}
        return sorted(found - {Path(name).stem for name in self.done})

    def begun(self, name: str) -> list[tuple[str, int]]:
        """Every time that a cell was begun: the node, and the step."""
        text = (self.out / "output" / f"{name}.txt").read_text()
        return [
            (node, int(step.group(1)) if (step := re.search(r"begins at step (\d+)", rest)) else -1)
            for node, rest in re.findall(r"node (\w+)\n(.*?)(?=\n\S+ \S+ UTC, |\Z)", text, re.DOTALL)
        ]


def found_in(out: Path) -> dict[str, Any]:
    """What must not depend on faults."""
    found: dict[str, Any] = {"table": (out / "table.csv").read_text()}
    for path in (out / "cells").glob("*.json"):
        content = json.loads(path.read_text())
        found[path.name] = [
            content[name] for name in ("key", "seeds", "returns", "lengths", "curve", "diagnosis")
        ]
    for path in (out / "runs").rglob("policy.safetensors"):
        found[str(path.relative_to(out))] = path.read_bytes()
    found["failures"] = sorted(path.read_text() for path in (out / "failures").glob("*"))
    return found


def node_of(sweep: Sweep, cluster: Cluster, name: str) -> str:
    """Which of the nodes trains a cell now."""
    text = (sweep.out / "output" / f"{name}.txt").read_text()
    pid = int(re.findall(r"process (\d+)", text)[-1])
    for node, process in cluster.nodes.items():
        if pid in descendants(process.pid):
            return node
    return ""


@contextlib.contextmanager
def a_place() -> Iterator[Path]:
    """A folder for all of it, which goes in the end."""
    place = Path(tempfile.mkdtemp(prefix="sweep-faults-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    """Sweep undisturbed, sweep with faults, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each cell takes at least")
    parser.add_argument("--executor", choices=("ray", "slurm", "real-slurm"), default="ray")
    options, _ = parser.parse_known_args()  # `record` knows one more
    with a_place() as place:
        prepare(place, options.seconds)
        limits = _LIMITS.get(options.executor)
        result = on_ray(place) if limits is None else on_slurm(place, limits)
        record("sweep_faults", result, case=options.executor)


_LIMITS = {
    "slurm": ("executor.cluster=local", "executor.minutes=0.75", "executor.notice=20"),
    "real-slurm": ("executor.minutes=2", "executor.notice=40", "executor.cpus=1", "executor.memory_gb=2"),
}
"""Too little time for a cell."""


def prepare(place: Path, seconds: float) -> None:
    """A log, and an environment for everything that is begun here."""
    (place / "slowly").mkdir()
    (place / "slowly" / "sitecustomize.py").write_text(SLOWLY.replace("PAUSE", str(seconds / _CHUNKS)))
    paths = [str(place / "slowly"), str(Path(mcetm.__file__).parents[1])]
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "JAX_PLATFORMS": "cpu",
        # A secret for this cluster alone: whatever the user's own clusters have is neither asked nor changed.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "true",
        "MCETM_COMPILATION_CACHE": str(place / "compiled"),
    }
    mcetm.collect("pendulum", 400, "uniform", processes=1).save(place / "log.npz")


def undisturbed(plan: Path, out: Path, *options: str) -> Sweep:
    """A sweep that nothing happens to."""
    print("an undisturbed sweep", flush=True)
    with Sweep(plan, out, *options) as whole:
        whole.wait_for(lambda: (whole.out / "table.md").exists(), "its table is there")
        whole.process.wait()
    return whole


def on_slurm(place: Path, limits: Sequence[str]) -> dict[str, Any]:
    """Two cells whose jobs are told to go, again and again."""
    plan = place / "plan.toml"
    text = PLAN.format(log=place / "log.npz", steps=_CHUNKS * 1000, port=0)
    plan.write_text(text.replace(", 0.003, 0.004, 0.005, 0.006", "").replace('address = "127.0.0.1:0"', ""))
    expected = found_in(undisturbed(plan, place / "whole", "--executor", "local").out)
    print("jobs with too little time", flush=True)
    always = ("executor.gpus=0", "executor.timeouts=20")
    with Sweep(plan, place / "limited", "--executor", "slurm", "--set", *always, *limits) as sweep:
        sweep.wait_for(lambda: (sweep.out / "table.md").exists(), "its table is there", 3600)
        sweep.process.wait()
        found = found_in(sweep.out)
        return {
            "cells": len(sweep.done),
            "failed_by_itself": found["failures"],
            "steps_at_which_jobs_began": [
                [step for _, step in sweep.begun(Path(name).stem)] for name in sorted(sweep.done)
            ],
            "differences": sorted(n for n in {*expected, *found} if expected.get(n) != found.get(n)),
        }


def on_ray(place: Path) -> dict[str, Any]:
    """Both sweeps, and what was found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    plan = place / "plan.toml"
    plan.write_text(PLAN.format(log=place / "log.npz", steps=_CHUNKS * 1000, port=port))
    cluster = Cluster(place, port)
    try:
        cluster.head()
        cluster.worker("first")
        cluster.worker("second")
        whole = undisturbed(plan, place / "whole")
        nodes = {node for name in whole.done for node, _ in whole.begun(Path(name).stem)}
        print("a sweep with faults", flush=True)
        found = faults(cluster, plan, place, found_in(whole.out))
        return {"nodes_of_the_undisturbed_sweep": len(nodes), **found}
    finally:
        cluster.close()


def faults(cluster: Cluster, plan: Path, place: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """The sweep with faults, and how it differs from the other."""
    out = place / "disturbed"
    (out / "runs").mkdir(parents=True)
    if os.geteuid() == 0:
        cluster.worker("full", f"mount -t tmpfs -o size=4k tmpfs {out / 'runs'}")
    with Sweep(plan, out) as sweep:
        sweep.wait_for(
            lambda: len(sweep.done) >= 1 and len(sweep.training()) >= 1, "one cell is done, others run"
        )
        victim = sweep.training()[0]
        node = node_of(sweep, cluster, victim)
        kept = sweep.finished()
        cluster.kill(node)
        print(f"  killed the worker '{node}', which trained {victim}", flush=True)
        cluster.worker("third")
        sweep.wait_for(lambda: len(sweep.begun(victim)) > 1, "its cell is begun again")
        sweep.wait_for(
            lambda: len(sweep.done) > len(kept) and len(sweep.training()) >= 1, "another cell is done"
        )
        headless = sweep.training()
        kept = {**sweep.finished(), **kept}
        for name in list(cluster.nodes):
            cluster.kill(name)
        print(f"  killed the head and all workers, which trained {', '.join(headless)}", flush=True)
        cluster.head()
        cluster.worker("fourth")
        cluster.worker("fifth")
        sweep.wait_for(lambda: (out / "table.md").exists(), "its table is there")
        sweep.process.wait()
        found, last = found_in(out), sweep.finished()
        log = out.with_suffix(".log").read_text()
        print(log[: log.find("cells done.")], flush=True)
        return {
            "cells": len([name for name in expected if name.endswith(".json")]),
            "failed_by_itself": expected["failures"],
            "attempts_that_met_a_full_disk": log.count("No space left"),
            "killed_in_the_middle": sorted({victim, *headless}),
            "steps_at_which_these_began": [
                [step for _, step in sweep.begun(name)] for name in sorted({victim, *headless})
            ],
            "finished_before_a_fault": len(kept),
            "of_these_changed_or_begun_again": sum(last[name] != said for name, said in kept.items()),
            "differences": sorted(
                name for name in {*expected, *found} if expected.get(name) != found.get(name)
            ),
        }


if __name__ == "__main__":
    main()

"""SIGKILL at every file operation of a run, and at random moments: is anything lost, is anything left behind?

    python benchmarks/kills.py --kills 200 [--algo bc|iql|mopo] [--seed 0] [--simulators 1]

A run is trained once undisturbed. Then, again and again, the same run is killed and goes on: half of the
kills come right before one of its file operations (each in its turn or, with fewer kills than operations,
evenly over the run), the other half after a random time, several in one run. At the end policies, results,
metrics and names of files must be those of the undisturbed run. With several simulators each evaluation
shares its episodes among as many processes, which must not outlive the run.

A server that has imported everything, and computed nothing yet, forks a process for each attempt.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcetm
from mcetm.cli import main as command
from mcetm.envs import pool
from mcetm.training import Saving
from record import record

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
_SMALL = {
    "bc": ["algorithm.width=8", "algorithm.depth=1", "algorithm.steps=3000", "algorithm.batch_size=8"],
    "iql": ["algorithm.width=8", "algorithm.depth=1", "algorithm.steps=60", "algorithm.batch_size=8"],
    "mopo": [
        *("model.members=2", "model.elites=2", "model.width=8", "model.steps=40", "model.batch_size=8"),
        *("world.reward.width=8", "world.reward.steps=40", "world.calibration.rows=50"),
        *("algorithm.learner.width=8", "algorithm.learner.steps=40", "algorithm.learner.batch_size=8"),
        *("algorithm.rollout.batch=8", "algorithm.rollout.every=10", "algorithm.rollout.horizon=2"),
    ],
}


_PATIENCE = 60.0
"""Seconds in which a simulator must have noticed that nobody listens."""


class Job:
    """A run that can be started again and again in some folder."""

    def __init__(self, place: Path, algo: str, simulators: int) -> None:
        self.log, self._algo = place / "log.npz", algo
        self._episodes = 1 if simulators == 1 else 5 * simulators  # five run side by side in a process
        pool.available_cores = lambda: 2 * simulators  # half of the cores simulate

    def arguments(self, folder: Path) -> list[str]:
        """What a person types: the first time, and after a kill."""
        if (folder / "config.json").exists():
            return ["train", "--resume", str(folder)]
        options = f"train --dataset {self.log} --algo {self._algo} --seeds 2 --out {folder} --set"
        return [*options.split(), f"evaluation.episodes={self._episodes}", *_SMALL[self._algo]]


def attempt(job: Job, folder: Path, kill: Callable[[], Any] | None = None, delay: float | None = None) -> int:
    """One process that trains; how it ended, minus the signal if one ended it."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            errors = os.open(folder.parent / "errors.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(silent, 1)
            os.dup2(errors, 2)
            Saving.pause = lambda self, cost: 0.0  # a checkpoint after every chunk
            if kill is not None:
                kill()
            code = command(job.arguments(folder))
        finally:
            os._exit(code)
    timer = None
    if delay is not None:
        timer = threading.Timer(delay, lambda: os.kill(child, signal.SIGKILL))
        timer.start()
    _, status = os.waitpid(child, 0)
    if timer is not None:
        timer.cancel()
    return os.waitstatus_to_exitcode(status)


def before_operation(folder: Path, number: int, counted: Path | None = None) -> Callable[[], None]:
    """Be killed right before the given change of a file in the folder; or only count the changes."""

    def watch() -> None:
        seen, inside = 0, str(folder)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal seen
            changes = event in _CHANGES or (event == "open" and _writes(arguments))
            if not changes or not str(arguments[0]).startswith(inside):
                return
            seen += 1
            if counted is not None:
                with counted.open("a") as file:  # which is outside the folder
                    file.write(f"{event}\n")
            elif seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    return watch


def _writes(arguments: tuple[Any, ...]) -> bool:
    flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else 0
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def left_running(place: Path) -> int:
    """Simulator processes of a killed run that have not noticed after a while."""
    mark = f"MCETM_COMPILATION_CACHE={place}".encode()
    until, found = time.monotonic() + _PATIENCE, 1
    while found and time.monotonic() < until:
        time.sleep(0.1)
        found = sum(_is_simulator(process, mark) for process in Path("/proc").glob("[0-9]*"))
    return found


def _is_simulator(process: Path, mark: bytes) -> bool:
    try:
        simulates = b"mcetm.envs.worker" in (process / "cmdline").read_bytes()
        return simulates and mark in (process / "environ").read_bytes()
    except OSError:  # it has ended meanwhile
        return False


def contents(folder: Path) -> dict[str, Any]:
    """What must not depend on kills: names of files, policies, results, the steps that were logged."""
    found: dict[str, Any] = {"files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))}
    for path in folder.rglob("policy.safetensors"):
        found[str(path.relative_to(folder))] = path.read_bytes()
    for path in folder.rglob("metrics.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            for name in ("seconds", "between_seconds"):
                line.pop(name, None)
        found[str(path.relative_to(folder))] = lines
    found["results"] = json.loads((folder / "results.json").read_text())
    return found


def main() -> None:
    """Kill, go on, compare, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--algo", choices=list(_SMALL), default="bc")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simulators", type=int, default=1)
    options, _ = parser.parse_known_args()  # `record` knows one more
    chance = random.Random(options.seed)
    for name in ("presets", "train"):  # what every attempt would import for itself
        importlib.import_module(f"mcetm.pipeline.{name}")
    place = Path(tempfile.mkdtemp(prefix="kills-"))
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"
    os.environ["MCETM_COMPILATION_CACHE"] = str(place / "compiled")
    job = Job(place, options.algo, options.simulators)
    mcetm.collect("pendulum", 400, "uniform", processes=1).save(job.log)
    whole, counted = place / "whole", place / "operations"
    attempt(job, place / "first")  # later ones need not compile
    began = time.monotonic()
    if attempt(job, whole, before_operation(whole, 0, counted)) != 0:
        sys.exit(f"the undisturbed run failed: {(place / 'errors.txt').read_text()}")
    seconds, operations = time.monotonic() - began, len(counted.read_text().splitlines())
    expected = contents(whole)
    kills = {"before an operation": 0, "at random": 0}
    orphans = 0
    lost: list[str] = []
    left: list[str] = []

    def finish(folder: Path, how: str) -> None:
        """Go on to the end; what is not as it should be is noted."""
        code = attempt(job, folder)
        if code != 0:
            lost.append(f"{how}: exit {code}")
            return
        found = contents(folder)
        differ = (name for name in expected if name != "files" and found.get(name) != expected[name])
        lost.extend(f"{how}: {name}" for name in differ)
        lost.extend(f"{how}: {name} is missing" for name in set(expected["files"]) - set(found["files"]))
        left.extend(f"{how}: {name}" for name in set(found["files"]) - set(expected["files"]))
        shutil.rmtree(folder)

    half = options.kills // 2
    stride = max(1.0, operations / max(1, half))
    numbers = [1 + int(i * stride) % operations for i in range(half)]
    for number in numbers:
        folder = place / "run"
        if attempt(job, folder, before_operation(folder, number)) == -signal.SIGKILL:
            kills["before an operation"] += 1
            orphans += left_running(place)
        finish(folder, f"before operation {number}")
        print(f"\r{sum(kills.values())} kills, {len(lost)} lost, {len(left)} left behind", end="", flush=True)
    while sum(kills.values()) < options.kills:
        folder = place / "run"
        for _ in range(chance.randint(1, 4)):
            if attempt(job, folder, delay=chance.uniform(0.0, 0.8 * seconds)) == -signal.SIGKILL:
                kills["at random"] += 1
                orphans += left_running(place)
        finish(folder, "at random moments")
        print(f"\r{sum(kills.values())} kills, {len(lost)} lost, {len(left)} left behind", end="", flush=True)
    print()
    for words in (*lost, *left):
        print(words)
    record(
        "kills",
        {
            "algorithm": options.algo,
            "operations_of_a_run": operations,
            "operations_met": len(set(numbers)),
            "kills_before_an_operation": kills["before an operation"],
            "kills_at_random": kills["at random"],
            "runs_lost": len(lost),
            "files_left_behind": len(left),
            "simulators": options.simulators,
            "simulators_left_running": orphans,
        },
        case=options.algo if options.simulators == 1 else f"{options.algo}-simulators",
    )
    with contextlib.suppress(OSError):
        shutil.rmtree(place)
    sys.exit(1 if lost or left or orphans else 0)


if __name__ == "__main__":
    main()

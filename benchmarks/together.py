"""The commands of a list on one device, several at a time: small programs leave most of a large GPU idle.

    python benchmarks/together.py benchmarks/queues/locomotion.txt [--only walker2d] [--jobs 6] [--minutes 30]

A line is a shell command. `FILE:KEY =>` before it lets it wait until that JSON file has that key, as a run's
`seconds.json` has the stages that are over; `#` begins a comment. Every command has a log of its own. If the
first to end has failed, nothing else is started: what is wrong with one is mostly wrong with all. On NVIDIA's
GPUs start MPS first (`nvidia-cuda-mps-control -d`), or programs take turns instead of sharing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Job:
    """A line of the list."""

    number: int
    command: str
    wait: str
    began: float = 0.0

    def ready(self) -> bool:
        """Whether what it waits for is there."""
        if not self.wait:
            return True
        path, key = os.path.expandvars(self.wait).rsplit(":", 1)
        try:
            return key in json.loads(Path(path).read_text())
        except (OSError, ValueError):
            return False

    def start(self, logs: Path) -> subprocess.Popen[bytes]:
        """As a process group of its own, so that all of it can be stopped."""
        self.began = time.monotonic()
        with (logs / f"{self.number:02d}.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S602 (commands of the user's own list)
                self.command, shell=True, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def end(self, code: int, logs: Path) -> None:
        """Say how it went; of one that failed, its last words."""
        print(f"{time.monotonic() - self.began:5.0f} s, exit {code}: {self.command}", flush=True)
        if code:
            words = (logs / f"{self.number:02d}.log").read_text(errors="replace")
            print("".join(words.splitlines(keepends=True)[-5:]), flush=True)


def read(path: Path, only: Sequence[str] = ("",)) -> list[Job]:
    """The jobs of a list whose commands hold one of these strings."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    parts = [line.partition(" => ") for line in lines if line and not line.startswith("#")]
    jobs = [(after if arrow else before, before if arrow else "") for before, arrow, after in parts]
    return [Job(i, *job) for i, job in enumerate(jobs) if any(text in job[0] for text in only)]


def run(jobs: list[Job], logs: Path, *, most: int, seconds: float) -> int:
    """Run them in order as places become free; the number that failed or were left."""
    logs.mkdir(parents=True, exist_ok=True)
    waiting, running, codes = list(jobs), dict[int, tuple[Job, subprocess.Popen[bytes]]](), list[int]()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            for job, process in list(running.values()):
                if process.poll() is not None:
                    del running[job.number]
                    codes.append(process.returncode)
                    job.end(process.returncode, logs)
            broken = bool(codes) and codes[0] != 0
            ready = [] if broken else [job for job in waiting if job.ready()]
            for job in ready[: most - len(running)]:
                waiting.remove(job)
                running[job.number] = (job, job.start(logs))
            if not running:  # all is done, or who still waits waits in vain
                break
            time.sleep(0.5)
    finally:
        for job, process in running.values():
            print(f"stopped after {time.monotonic() - job.began:.0f} s: {job.command}", flush=True)
            stop(process)
    for job in waiting:
        print(f"not started: {job.command}")
    return sum(code != 0 for code in codes) + len(running) + len(waiting)


def stop(process: subprocess.Popen[bytes], patience: float = 60.0) -> None:
    """End a process group; a run saves what it has, and the shell around it does not wait for that."""
    end = time.monotonic() + patience
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < end:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    """Run a list."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("list", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], help="commands that hold one of these strings")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then stop what still runs")
    parser.add_argument("--logs", type=Path, default=Path("runs/logs"))
    given = parser.parse_args()
    sys.exit(run(read(given.list, given.only), given.logs, most=given.jobs, seconds=60 * given.minutes) > 0)


if __name__ == "__main__":
    main()

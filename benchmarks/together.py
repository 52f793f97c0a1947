"""The commands of a list on one device, several at a time: small programs leave most of a large GPU idle.

    python benchmarks/together.py benchmarks/queues/locomotion.txt [--only walker2d] [--jobs 6] [--minutes 30]

A line is a shell command. `FILE:KEY =>` before it lets it wait until that JSON file has that key, as a run's
`seconds.json` has the stages that are over; `#` begins a comment. Every command has a log of its own. If the
first to end has failed, nothing else is started: what is wrong with one is mostly wrong with all. On NVIDIA's
GPUs start MPS first (`nvidia-cuda-mps-control -d`), or programs take turns instead of sharing.
"""

from __future__ import annotations

import argparse
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
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0

    @property
    def log(self) -> str:
        """The name of its log."""
        return f"{self.number:02d}.log"

    def ready(self) -> bool:
        """Whether what it waits for is there."""
        if not self.wait:
            return True
        path, key = os.path.expandvars(self.wait).rsplit(":", 1)
        try:
            return key in json.loads(Path(path).read_text())
        except (OSError, ValueError):
            return False


def read(path: Path, only: Sequence[str] = ("",)) -> list[Job]:
    """The jobs of a list whose commands hold one of these strings."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    parts = [line.partition(" => ") for line in lines if line and not line.startswith("#")]
    jobs = [(after if arrow else before, before if arrow else "") for before, arrow, after in parts]
    chosen = [job for job in jobs if any(text in job[0] for text in only)]
    return [Job(i, command, wait) for i, (command, wait) in enumerate(chosen)]


def run(jobs: list[Job], logs: Path, *, most: int, seconds: float) -> int:
    """Run them in order as places become free; the number that failed or were left."""
    logs.mkdir(parents=True, exist_ok=True)
    waiting, running, ended, failed = list(jobs), list[Job](), 0, 0
    end = time.monotonic() + seconds
    while running or waiting:
        for job in [job for job in running if job.process is not None and job.process.poll() is not None]:
            running.remove(job)
            ended, code = ended + 1, job.process.returncode if job.process else 0
            print(f"{time.monotonic() - job.began:5.0f} s, exit {code}: {job.command}", flush=True)
            if code:
                failed += 1
                print("".join((logs / job.log).read_text().splitlines(keepends=True)[-5:]), flush=True)
            if code and ended == 1:
                waiting = []
        # Who waits for a run that is over waits in vain.
        if not running and waiting and not any(job.ready() for job in waiting):
            break
        if time.monotonic() > end:
            break
        for job in [job for job in waiting if job.ready()][: most - len(running)]:
            waiting.remove(job)
            running.append(job)
            job.began = time.monotonic()
            with (logs / job.log).open("wb") as log:
                job.process = subprocess.Popen(  # noqa: S602 (commands of the user's own list)
                    job.command, shell=True, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )
        time.sleep(0.5)
    for job in running:
        if job.process is not None:
            os.killpg(job.process.pid, signal.SIGTERM)  # they save what they have
            print(f"stopped after {time.monotonic() - job.began:.0f} s: {job.command}", flush=True)
    for job in running:
        if job.process is not None:
            job.process.wait()
    for job in waiting:
        print(f"not started: {job.command}")
    return failed + len(running) + len(waiting)


def main() -> None:
    """Run a list."""
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

"""A Ray cluster of processes here, any of which can be killed; and trainings that take their time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SLOWLY = """
import importlib.util, sys

class Slowly:
    # A checkpoint after every chunk, a pause instead of work, and a word on where a training goes on.
    def find_spec(self, name, path=None, target=None):
        if name != "mcetm.training.keeping":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def execute(module):
            run(module)
            note, resume = module.Keeper.note, module.Keeper.resume

            def slow_note(self, line):
                import time
                time.sleep(PAUSE)
                return note(self, line)

            def told_resume(self, job):
                found = resume(self, job)
                print(f"begins at step {found[1]}", flush=True)
                return found

            module.Saving.pause = lambda self, cost: 0.0
            module.Keeper.note, module.Keeper.resume = slow_note, told_resume

        spec.loader.exec_module = execute
        return spec

sys.meta_path.insert(0, Slowly())
"""


class Cluster:
    """A Ray cluster of processes on this machine."""

    def __init__(self, place: Path, port: int) -> None:
        self._place, self._port = place, port
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}

    def head(self) -> None:
        """Begin a head, which trains nothing."""
        self._begin("head", ["--head", f"--port={self._port}", "--num-cpus=0", "--include-dashboard=false"])

    def worker(self, name: str, before: str = "") -> None:
        """Begin a node that trains one cell at a time; `before` is done in its own mount namespace."""
        self._begin(name, [f"--address=127.0.0.1:{self._port}", "--num-cpus=1"], before)

    def _begin(self, name: str, options: list[str], before: str = "") -> None:
        ray = Path(sys.executable).parent / "ray"
        command = [str(ray), "start", *options, "--block", "--object-store-memory=100000000"]
        if before:
            inner = f"{before} && exec {' '.join(command)}"
            command = ["unshare", "--mount", "sh", "-c", inner]
        path = self._place / f"{name}.log"
        for _ in range(3):  # on a machine that is busy, Ray sometimes gives up
            with path.open("wb") as log:
                node = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            self.nodes[name] = node
            while node.poll() is None:
                if "Ray runtime started" in path.read_text():
                    return
                time.sleep(0.5)
        sys.exit(f"the node '{name}' did not begin:\n{path.read_text()[-3000:]}")

    def kill(self, name: str) -> None:
        """SIGKILL for every process of a node, as when its power is cut."""
        node = self.nodes.pop(name)
        for pid in [*descendants(node.pid), node.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()

    def close(self) -> None:
        """End all nodes."""
        for name in list(self.nodes):
            self.kill(name)


def descendants(pid: int) -> list[int]:
    """All processes that this one has begun, and those that they have."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found

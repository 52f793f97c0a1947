"""Print a benchmark's result and, with `--record`, keep it with all that is needed to read it later."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def record(name: str, result: dict[str, Any]) -> None:
    """Print; write `results/NAME-MACHINE.json` where `--record` is among the arguments.

    The machine is named by its accelerator where the result has one, else by its cores.
    """
    command = " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]])
    content = {"benchmark": name, "command": command, **result, **machine()}
    where = content.get("device", "cpu").split()[-1].lower()
    where = f"{content['cores']}-cores" if where == "cpu" else where
    text = json.dumps(content, indent=1)
    print(text)
    if "--record" in sys.argv:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}-{where}.json").write_text(text + "\n")


def machine() -> dict[str, Any]:
    """Hardware, versions and commit."""
    names = ("mcetm", "numpy", "h5py", "gymnasium", "mujoco")
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in names},
        "commit": _commit(),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        if lines:
            return lines[0].partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The commit measured; results themselves do not make it dirty."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(RESULTS.parent.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks/*.py")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")

"""What a result was made with: versions, hardware, commit."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from mcetm.envs.collection import available_cores
from mcetm.processor import processor_name
from mcetm.versions import version_of

_PACKAGES = ("mcetm", "jax", "equinox", "optax", "numpy", "h5py", "gymnasium", "mujoco")


def describe_environment() -> dict[str, Any]:
    """The machine with its accelerator, and the software, as plain data."""
    import jax

    return {"device": jax.devices()[0].device_kind, **describe_host()}


def describe_host() -> dict[str, Any]:
    """The same without the accelerator, which is not looked for."""
    return {
        "cores": available_cores(),
        "processor": processor_name(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in _PACKAGES},
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of a source checkout, `-dirty` where its code was changed; None for an installed package."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=10
        ).stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        # Results that a measurement leaves behind are no change of what was measured.
        changed = git("status", "--porcelain", "--", "src", "benchmarks/*.py")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return commit + ("-dirty" if changed else "") if commit else None

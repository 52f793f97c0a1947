"""What a result was made with: versions, hardware, commit."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcetm.envs.collection import available_cores

_PACKAGES = ("mcetm", "jax", "equinox", "optax", "numpy", "gymnasium", "mujoco")


def describe_environment() -> dict[str, Any]:
    """The machine and the software, as plain data."""
    import jax

    return {
        "device": jax.devices()[0].device_kind,
        "cores": available_cores(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _PACKAGES},
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of a source checkout; None for an installed package."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None

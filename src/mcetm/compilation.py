"""Compiled programs kept between processes, so that the second start of a job need not compile again.

JAX can keep what it compiled in a folder; here is where that is, and how much of it. Each kind of processor
has its own: a program compiled for another one may not run here, and home folders are shared.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mcetm.files import cache_folder
from mcetm.processor import processor_kind

__all__ = ["CHOICE", "keep_programs", "programs_folder", "quick_options"]

CHOICE = "MCETM_COMPILATION_CACHE"
"""The variable that names another folder, or says `off`."""
MOST_BYTES = 2_000_000_000
"""Beyond this the programs that were not used for longest go; JAX sees to it."""
_LEAST_SECONDS = 0.1
"""What compiles faster is not worth a file."""


def quick_options() -> dict[str, int]:
    """Options of the compiler for a program that runs once: on a CPU its last level is most of the work.

    Not for programs that train: sums are taken in another order there, and so end in other bits.
    """
    import jax

    chosen = "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", "")
    hasty = jax.config.read("jax_disable_most_optimizations")  # less than this already
    return {} if chosen or hasty or jax.default_backend() != "cpu" else {"xla_backend_optimization_level": 1}


def keep_programs() -> Path | None:
    """Let JAX keep what it compiles; the folder, or None where nothing is kept.

    A folder that JAX was given already (`JAX_COMPILATION_CACHE_DIR`) stays, and one that cannot be written is
    no reason to fail.
    """
    import jax

    chosen = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    if chosen is not None:
        return Path(chosen)
    folder = programs_folder()
    if folder is None or not _writable(folder):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", MOST_BYTES)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)
    return folder


def programs_folder() -> Path | None:
    """Where programs are kept: `$MCETM_COMPILATION_CACHE`, else in the cache folder; None if it is `off`."""
    chosen = os.environ.get(CHOICE, "")
    if chosen.lower() in ("off", "0", "no", "none"):
        return None
    if chosen:
        return Path(chosen).expanduser()

    return cache_folder() / "compiled" / processor_kind()


def _writable(folder: Path) -> bool:
    try:
        # For this user alone: whoever can write programs here can have them run.
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False

"""Compiled programs kept between processes, so that the second start of a job need not compile again.

JAX can keep what it compiled in a folder; here is where that is, and how much of it. Each kind of processor
has its own: a program compiled for another one may not run here, and home folders are shared.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

from mcetm.files import cache_folder
from mcetm.processor import processor_kind

__all__ = ["CHOICE", "keep_programs", "programs_folder"]

CHOICE = "MCETM_COMPILATION_CACHE"
"""The variable that names another folder, or says `off`."""
MOST_BYTES = 2_000_000_000
"""When a process starts with more than this in the folder, the oldest programs go."""
_PROGRAM = re.compile(r"-[0-9a-f]{64}-cache$")
"""How JAX calls the file of a program."""
_LEAST_SECONDS = 0.1
"""What compiles faster is not worth a file."""


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
    forget_oldest(folder.parent if CHOICE not in os.environ else folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
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

    return cache_folder() / "programs" / processor_kind()


def forget_oldest(folder: Path, most: int | None = None) -> None:
    """Remove programs, the oldest first, until the rest take no more than `most` bytes; nothing else goes."""
    found = []
    for path in folder.rglob("*-cache"):
        with contextlib.suppress(OSError):  # another process may forget at the same time
            if _PROGRAM.search(path.name):
                found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
    excess = sum(size for _, size, _ in found) - (MOST_BYTES if most is None else most)
    for _, size, path in sorted(found):
        if excess <= 0:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        excess -= size


def _writable(folder: Path) -> bool:
    try:
        # For this user alone: whoever can write programs here can have them run.
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False

"""What kind of processor this is: its name for people, and a short code for what must not mix kinds."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from pathlib import Path


def processor_name() -> str:
    """What the processor calls itself."""
    return _said().get("model name") or platform.processor() or platform.machine()


def processor_kind() -> str:
    """A code of the name and of the instructions it knows: the same program runs on the same kind."""
    said = _said()
    known = said.get("flags") or said.get("Features") or ""
    return hashlib.sha256(f"{processor_name()} {known}".encode()).hexdigest()[:12]


def _said() -> dict[str, str]:
    """What Linux says of the first core; nothing elsewhere."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}

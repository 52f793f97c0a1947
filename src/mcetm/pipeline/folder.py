"""Where things are in the folder of a run."""

from __future__ import annotations

from pathlib import Path


def compared_folder(folder: Path, name: str) -> Path:
    """The folder, inside a run, of an algorithm that it trained for its table."""
    return folder / "compared" / name.replace(" ", "-").replace(",", "").lower()

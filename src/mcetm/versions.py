"""Which version of a package is here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def version_of(package: str) -> str:
    """The installed version; `uninstalled` for one that runs from its source folder, or is not here."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "uninstalled"

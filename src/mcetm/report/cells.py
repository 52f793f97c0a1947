"""Numbers with their spread, as tables show them."""

from __future__ import annotations


def cell(mean: float, spread: float | None) -> str:
    """Mean ± spread, as many digits as matter."""
    return f"{mean:.3g}" if spread is None else f"{mean:.3g} ± {spread:.1g}"

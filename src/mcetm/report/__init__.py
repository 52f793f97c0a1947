"""What a person looks at: tables, figures and pages."""

from mcetm.report.compare import (
    draw_comparison,
    draw_interquartile,
    draw_profile,
    style_of,
    to_markdown,
)
from mcetm.report.figures import STYLES, figure, legend_below

__all__ = [
    "STYLES",
    "draw_comparison",
    "draw_interquartile",
    "draw_profile",
    "figure",
    "legend_below",
    "style_of",
    "to_markdown",
]

"""What a person looks at: tables, figures and pages."""

from mcetm.report.compare import draw_comparison, to_markdown
from mcetm.report.figures import STYLES, figure, legend_below

__all__ = ["STYLES", "draw_comparison", "figure", "legend_below", "to_markdown"]

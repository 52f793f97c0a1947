"""What a person looks at: tables, figures and pages."""

from mcetm.report.figures import STYLES, figure, legend_below

__all__ = ["STYLES", "figure", "legend_below"]

"""How figures look: readable in grey and for colour-blind readers, written as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcetm.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, with three more; dashes and markers carry the same distinction without colour.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "linestyle": "-", "marker": "o"},
    {"color": "#E69F00", "linestyle": "--", "marker": "s"},
    {"color": "#56B4E9", "linestyle": "-.", "marker": "^"},
    {"color": "#009E73", "linestyle": "-", "marker": "D"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "v"},
    {"color": "#D55E00", "linestyle": "--", "marker": "P"},
    {"color": "#0072B2", "linestyle": "-.", "marker": "X"},
    {"color": "#882255", "linestyle": "-", "marker": "*"},
    {"color": "#44AA99", "linestyle": "--", "marker": "h"},
    {"color": "#332288", "linestyle": "-.", "marker": "<"},
    {"color": "#117733", "linestyle": "--", "marker": ">"},
    {"color": "#999999", "linestyle": ":", "marker": "."},
)

_LOOK: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "mcetm",  # the same figure gives the same file
    "svg.fonttype": "none",
}


@contextmanager
def figure(path: Path, *, width: float = 7.0, height: float = 3.0, formulas: bool = True) -> Iterator[Figure]:
    """Yield a figure to draw on; it is written to `path`.png and `path`.svg when done.

    Without `formulas` a dollar in a name is a dollar.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({**_LOOK, "text.parse_math": formulas}):
        drawn = Figure(figsize=(width, height))
        FigureCanvasAgg(drawn)
        yield drawn
        for kind in ("png", "svg"):
            image = io.BytesIO()
            drawn.savefig(image, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
            write_bytes(path.with_suffix(f".{kind}"), image.getbuffer())


def legend_below(drawn: Figure, axes: Iterable[Axes], side: str = "center", **look: Any) -> None:
    """One legend under all panels; a panel may lack what another shows."""
    entries: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    place: Any = f"outside lower {side}"
    drawn.legend(list(entries.values()), list(entries), loc=place, **look)

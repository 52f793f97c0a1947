"""How the pictures of docs/explanation look: on a light and on a dark page, and for colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from PIL import Image

from mcetm.nn.members import take_members
from mcetm.report.figures import figure
from record import RESULTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = RESULTS.parents[1] / "docs/explanation/figures"
GREY, ORANGE, BLUE, GREEN, PINK = "#808080", "#D55E00", "#3A8FD0", "#009E73", "#CC79A7"
"""Seen on white and on black, and by colour-blind readers."""


def first_seed(agent: Any) -> Any:
    """The learner of an agent's first seed, with its critics and its actor."""
    return take_members(agent.learner, 0)


@contextmanager
def picture(name: str, width: float, height: float) -> Iterator[Figure]:
    """A figure without a background, so that it suits a light and a dark page."""
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    look: Any = {**dict.fromkeys(names, GREY), "axes.facecolor": "none", "axes.titlesize": 9}
    path = FOLDER / name
    with figure(path, width=width, height=height) as drawn, mpl.rc_context(look):
        drawn.patch.set_alpha(0.0)
        yield drawn
    path.with_suffix(".svg").unlink()
    drawing = path.with_suffix(".png")
    with Image.open(drawing) as image:  # 256 colours: a third of the size, and nobody sees it
        image.quantize(256, method=Image.Quantize.FASTOCTREE).save(drawing, optimize=True)

"""Films of rollouts: a strip of pictures and a small animation, one row or panel for each model."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from mcetm.envs import Body, Frames
from mcetm.files import write_bytes
from mcetm.report import figure

Pictures = Mapping[int, np.ndarray] | Frames
"""Pictures by step."""
_DPI = 100
_WIDE, _LOW, _HIGH = 2.4, -0.25, 2.15
"""Metres of track, and of height, that a drawn picture shows."""
_COLOURS = 48


def draw_poses(body: Body, qpos: Float[np.ndarray, "frames qpos"], *, size: int) -> Frames:
    """A picture of every pose without a GL library: capsules, and a ground with marks every half metre."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(size / _DPI, size / _DPI), dpi=_DPI)
    canvas = FigureCanvasAgg(drawn)
    points = 72 * size / _DPI / _WIDE  # of a metre
    frames = []
    for ends, pose in zip(body.capsules(qpos), qpos, strict=True):
        drawn.clear()
        axis = drawn.add_axes((0, 0, 1, 1))
        axis.axhspan(_LOW, 0.0, color="0.85")
        left = pose[0] - _WIDE / 2
        marks = np.arange(np.floor(2 * left), 2 * (left + _WIDE) + 1) / 2
        axis.vlines(marks, _LOW, 0.0, color="0.6", linewidth=1)
        for (first, last), radius in zip(ends, body.radii, strict=True):
            width = 2 * radius * points
            line: Any = {"solid_capstyle": "round", "linewidth": width}
            axis.plot(*zip(first, last, strict=True), color="#0072B2", alpha=0.85, **line)
        axis.set(xlim=(left, left + _WIDE), ylim=(_LOW, _HIGH))
        axis.axis("off")
        canvas.draw()
        frames.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
    return np.array(frames)


def draw_strip(path: Path, rows: Mapping[str, Pictures], shown: Sequence[int], title: str) -> None:
    """Pictures of every row at these steps."""
    with figure(path, width=1.05 * len(shown) + 0.9, height=1.05 * len(rows) + 0.5) as drawn:
        axes = drawn.subplots(len(rows), len(shown), squeeze=False)
        for line, (name, frames) in zip(axes, rows.items(), strict=True):
            for axis, step in zip(line, shown, strict=True):
                axis.imshow(frames[step])
                axis.set(xticks=(), yticks=())
                axis.grid(visible=False)
                axis.spines[:].set_visible(False)
            line[0].set_ylabel(name.replace(", ", ",\n"), fontsize=8)
        for axis, step in zip(axes[0], shown, strict=True):
            axis.set_title(f"step {step}", fontsize=8)
        drawn.suptitle(title, fontsize=9)
        # Pictures side by side need no room for labels between them.
        engine: Any = drawn.get_layout_engine()
        engine.set(w_pad=0.01, h_pad=0.01, wspace=0.0, hspace=0.02)


def write_animation(
    path: Path, rows: Mapping[str, Pictures], shown: Sequence[int], *, milliseconds: int
) -> None:
    """A GIF with all rows side by side, in few colours so that it stays small."""
    from PIL import Image, ImageDraw

    pictures = []
    for step in shown:
        panels = []
        for name, frames in rows.items():
            panel = Image.fromarray(frames[step])
            ImageDraw.Draw(panel).text((4, 2), name, fill="black", stroke_width=2, stroke_fill="white")
            panels.append(np.asarray(panel))
        picture = Image.fromarray(np.concatenate(panels, axis=1))
        pictures.append(picture.quantize(_COLOURS, dither=Image.Dither.NONE))
    image = io.BytesIO()
    pictures[0].save(image, "GIF", save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0)
    write_bytes(path.with_suffix(".gif"), image.getbuffer())

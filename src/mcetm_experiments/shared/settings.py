"""What the settings of several studies share; light, as `mcetm --help` reads the settings of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

TaskName = Literal["hopper", "walker2d", "halfcheetah"]
Level = Literal["random", "medium", "medium-replay", "medium-expert"]
Model = Literal["mlp", "gaussian", "longer", "standard", "plain", "anchored", "diffusion"]
Source = Literal["collected", "d4rl"]
Preset = Literal["quick", "fast", "paper"]

Folder = Annotated[Path, arg(metavar="DIR")]
KeptFolder = Annotated[Path | None, arg(metavar="DIR")]
Tasks = Annotated[tuple[TaskName, ...], arg(help_behavior_hint="")]
Levels = Annotated[tuple[Level, ...], arg(help_behavior_hint="")]
Models = Annotated[tuple[Model, ...], arg(help_behavior_hint="")]


def say_written(out: Path, *figures: str) -> None:
    """Tell where the results and the figures of a study are."""
    drawn = ", ".join(str(out / f"{figure}.png") for figure in figures)
    print(f"wrote {out / 'results.json'} and {drawn} (and .svg)")

"""How long each stage of a run took, kept in the run's folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from mcetm.files import write_json
from mcetm.pipeline.results import read_seconds


class Stages:
    """Seconds by stage, in order; what a run spent before it was stopped and resumed counts too."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.seconds: dict[str, float] = {} if path is None else read_seconds(path)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done inside.

        A stage that is interrupted counts as far as it came, under a name of its own: the stage's stands for
        one that is over, and others may wait for it.
        """
        began, pending = time.monotonic(), f"{name}, interrupted"
        over = False
        try:
            yield
            over = True
        finally:
            before = self.seconds.pop(pending, 0.0) + (self.seconds.pop(name, 0.0) if over else 0.0)
            self.seconds[name if over else pending] = round(before + time.monotonic() - began, 3)
            if self._path is not None:
                write_json(self._path, self.seconds)

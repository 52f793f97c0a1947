"""How long each stage of a run took, kept in the run's folder."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcetm.console import stage
from mcetm.errors import UserError
from mcetm.files import write_json
from mcetm.pipeline.results import read_seconds


class Stages:
    """Seconds by stage, in order; what a run spent before it was stopped and resumed counts too."""

    def __init__(self, path: Path | None = None, plan: Sequence[str] = ()) -> None:
        """With a plan of the stages' names, each says its place among them."""
        self._path, self._plan, self._begun = path, list(plan), list[str]()
        self.seconds: dict[str, float] = {} if path is None else read_seconds(path)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done inside.

        A stage that is interrupted counts as far as it came, under a name of its own: the stage's stands for
        one that is over, and others may wait for it.
        """
        began, pending = time.monotonic(), f"{name}, interrupted"
        over = False
        shown = (
            stage(name, place=self._place(name)) if self._plan or self._begun else contextlib.nullcontext()
        )
        try:
            with shown:
                yield
            over = True
        finally:
            before = self.seconds.pop(pending, 0.0) + (self.seconds.pop(name, 0.0) if over else 0.0)
            self.seconds[name if over else pending] = round(before + time.monotonic() - began, 3)
            if self._path is not None:
                # What interrupted a stage is said, not that the disk is too full to note it.
                with contextlib.nullcontext() if over else contextlib.suppress(UserError):
                    write_json(self._path, self.seconds)

    def _place(self, name: str) -> str:
        """Which stage of how many this is; what was not planned counts, and what was left out does not."""
        if self._begun[-1:] != [name]:
            self._begun.append(name)
            if name in self._plan:
                del self._plan[: self._plan.index(name) + 1]
        return f"stage {len(self._begun)} of {len(self._begun) + len(self._plan)}"

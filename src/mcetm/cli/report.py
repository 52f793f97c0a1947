"""`mcetm report`: the page of a run made anew, one page over several runs, or an index of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Report:
    """Make the page of a run anew, one page over several runs, or an index over a folder of runs."""

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN [RUN ...]", help_behavior_hint="")]]
    """Folders of finished runs; or one folder that holds runs."""

    out: Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Where the page over several runs goes, as report.html; `report` by default."""

    def run(self) -> int:
        """Read, write."""
        from mcetm.console import say
        from mcetm.errors import UserError
        from mcetm.pipeline.page import make_index, make_page, make_several

        if not self.runs:
            raise UserError("Name the folders of the runs to report on: mcetm report RUN [RUN ...].")
        if len(self.runs) > 1:
            say(f"wrote {make_several(self.runs, self.out or Path('report'))}")
            return 0
        if self.out is not None:
            raise UserError(
                "--out is for the page of several runs; a single run has its page in its own folder."
            )
        folder = next(iter(self.runs))
        alone = (folder / "config.json").exists() or not folder.is_dir()
        say(f"wrote {make_page(folder) if alone else make_index(folder)}")
        return 0

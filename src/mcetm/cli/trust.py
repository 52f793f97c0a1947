"""`mcetm trust`: how much of a log a policy would be trusted on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from mcetm.cli.columns import ColumnOptions

Flag = Annotated[bool, arg(help_behavior_hint="")]


@dataclass(frozen=True)
class TrustOf:
    """Say how much of a log is inside what a run's policies are trusted on, and what is outside."""

    folder: Positional[Annotated[Path, arg(metavar="RUN")]]
    """Folder of a run, or of one policy."""

    log: Positional[Annotated[str, arg(metavar="SOURCE", help_behavior_hint="")]]
    """A log: a file, a name from `mcetm data list`, or a Minari id."""

    json: Flag = False
    """Print JSON, and nothing else."""

    columns: ColumnOptions = field(default_factory=ColumnOptions)

    def run(self) -> int:
        """Read, score, print."""
        import json

        from mcetm.agents.inside import inside_of
        from mcetm.agents.policy import load_policy, seed_folders
        from mcetm.console import output
        from mcetm.envs import described_columns, load_dataset
        from mcetm.errors import UserError
        from mcetm.files import path_kind
        from mcetm.formats import kind_of
        from mcetm.pipeline.config import read_config
        from mcetm.report.inside import show_inside

        places = seed_folders(self.folder) or [self.folder]
        policies = {place.name: load_policy(place) for place in places}
        for place in places:
            if policies[place.name].pairs is None:
                raise UserError(
                    f"{place} has no score of pairs in its files, so nothing is known of where to trust it; "
                    "policies of algorithms that learn in a world have one."
                )
        config = self.folder / "config.json"
        columns = self.columns.settings(self.log) or described_columns(self.log)
        table = path_kind(Path(self.log)) == "file" and kind_of(Path(self.log)) in ("csv", "parquet")
        if columns is None and table and config.exists():
            columns = read_config(config).columns  # another table of the same maker
        log = load_dataset(self.log, columns=columns)
        found = {name: inside_of(policy, log) for name, policy in policies.items()}
        if self.json:
            print(json.dumps({name: one.to_dict() for name, one in found.items()}, indent=1))
        else:
            show_inside(found, log, output())
        return 0

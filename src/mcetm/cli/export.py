"""`mcetm export`: a policy as a file that other programs run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from mcetm.console import say

Flag = Annotated[bool, arg(help_behavior_hint="")]


@dataclass(frozen=True)
class Export:
    """Write a run's policy for other programs: Python without packages, C, ONNX or StableHLO."""

    folder: Positional[Annotated[Path, arg(metavar="RUN")]]
    """Folder of a run, or of one policy."""

    to: Annotated[Literal["npz", "h", "onnx", "stablehlo"] | None, arg(help_behavior_hint="")] = None
    """npz: arrays and a Python file of the standard library; h: a C header; onnx; stablehlo: for JAX, XLA."""

    seed: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Which seed's policy; the run's first by default."""

    out: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """File to write; policy.KIND in the current folder by default."""

    force: Flag = False
    """Replace an existing file."""

    def run(self) -> int:
        """Read, write, say what was written."""
        from mcetm.agents.policy import load_policy
        from mcetm.errors import UserError
        from mcetm.files import path_kind

        out = self._out()
        policy = load_policy(self._policy_folder())
        if path_kind(out) == "file" and not self.force:
            raise UserError(f"{out} exists already; --force replaces it.")
        written = policy.export(out)
        trust = "no score of pairs" if policy.pairs is None else f"trusted up to {policy.pairs.limit:.3g}"
        said = policy.about
        name = ", ".join(f"{key} {said[key]}" for key in ("algorithm", "seed") if said.get(key) is not None)
        say(f"wrote {' and '.join(map(str, written))}: {name or 'a policy'}; {trust}")
        return 0

    def _out(self) -> Path:
        from mcetm.errors import UserError

        if self.out is None:
            if self.to is None:
                raise UserError(
                    "Say which kind of file: --to npz, h, onnx or stablehlo, or name one with --out."
                )
            return Path(f"policy.{self.to}")
        if self.to is not None and self.out.suffix.lower() != f".{self.to}":
            raise UserError(f"--out {self.out} does not end with .{self.to}, as --to {self.to} asks.")
        return self.out

    def _policy_folder(self) -> Path:
        """Where the policy of the seed is."""
        from mcetm.agents.policy import seed_folders
        from mcetm.errors import UserError

        if self.seed is None:
            return self.folder
        folders = {int(path.name.removeprefix("seed-")): path for path in seed_folders(self.folder)}
        if self.seed not in folders:
            known = ", ".join(map(str, folders)) or "none"
            raise UserError(f"{self.folder} has no policy of seed {self.seed}; its seeds: {known}.")
        return folders[self.seed]

"""`mcetm export`: a policy or a model as a file that other programs run."""

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

    part: Annotated[Literal["policy", "dynamics", "energies"], arg(help_behavior_hint="")] = "policy"
    """What to write: the policy, the model of the dynamics, or its energies (both to stablehlo; a Gaussian
    ensemble to onnx too)."""

    samples: int = 10
    """Next states that each member of the dynamics draws."""

    seed: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Which seed's policy; the run's first by default."""

    out: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """File to write; policy.KIND, or dynamics.KIND, in the current folder by default."""

    force: Flag = False
    """Replace an existing file."""

    def run(self) -> int:
        """Read, write, say what was written."""
        from mcetm.errors import UserError
        from mcetm.files import path_kind

        out = self._out()
        if path_kind(out) == "file" and not self.force:
            raise UserError(f"{out} exists already; --force replaces it.")
        written, what = self._policy(out) if self.part == "policy" else self._model(out)
        say(f"wrote {' and '.join(map(str, written))}: {what}")
        return 0

    def _policy(self, out: Path) -> tuple[list[Path], str]:
        from mcetm.agents.policy import load_policy

        policy = load_policy(self._policy_folder())
        trust = "no score of pairs" if policy.pairs is None else f"trusted up to {policy.pairs.limit:.3g}"
        said = policy.about
        name = ", ".join(f"{key} {said[key]}" for key in ("algorithm", "seed") if said.get(key) is not None)
        return policy.export(out), f"{name or 'a policy'}; {trust}"

    def _model(self, out: Path) -> tuple[list[Path], str]:
        from mcetm.data import Statistics
        from mcetm.errors import UserError
        from mcetm.export import export_energy, export_model
        from mcetm.export.content import finite_or_none, source_name
        from mcetm.pipeline.finished import read_world

        if self.seed is not None:
            raise UserError("--seed is for policies: the seeds of a run share its model.")
        config, world, log = read_world(self.folder)
        # What the model's scaling was found on.
        scale = Statistics.of(log.split(config.holdout, seed=config.seed)[0]).obs
        about = {
            **log.metadata.known_names,
            "task": log.metadata.task,
            "dataset": source_name(config.dataset),
            "data_checksum": log.checksum,
            "obs_mean": scale.mean.tolist(),
            "obs_std": scale.std.tolist(),
            "action_low": finite_or_none(log.metadata.action_low),
            "action_high": finite_or_none(log.metadata.action_high),
        }
        about = {name: value for name, value in about.items() if value is not None}
        kind = "no model" if config.model is None else config.model.name
        if self.part == "energies":
            return export_energy(world.model, out, about=about), f"the energies of {kind}"
        return export_model(world.model, out, samples=self.samples, about=about), f"the model {kind}"

    def _out(self) -> Path:
        from mcetm.errors import UserError

        if self.out is None:
            if self.to is None:
                raise UserError(
                    "Say which kind of file: --to npz, h, onnx or stablehlo, or name one with --out."
                )
            return Path(f"{self.part}.{self.to}")
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

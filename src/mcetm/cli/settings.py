"""`mcetm settings`: every setting there is, before any run exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class ListSettings:
    """List the settings of an algorithm, a model or a part of a run, as `--set` names them."""

    name: Positional[Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]] = None
    """An algorithm, a model (`module:Class` for one of your own) or a part; without one, all names."""

    preset: Annotated[str, arg(metavar="NAME")] = "quick"
    """The preset whose values are shown."""

    def run(self) -> int:
        """Print them."""
        from rich.markup import escape
        from rich.table import Table

        from mcetm.console import output
        from mcetm.pipeline.config import model_names
        from mcetm.pipeline.presets import algorithm_names

        if self.name is None:
            print("algorithms:", ", ".join(algorithm_names()))
            print("models:", ", ".join(model_names()))
            print("parts of an algorithm: sac, td3, rollout")
            print("parts of a run: run, world, evaluation")
            print("of mcetm estimate: estimates")
            return 0
        table = Table(
            "setting", "value", "can be", "what it is", title=f"{self.name} in the preset {self.preset}"
        )
        for row in self._rows():
            table.add_row(*(escape(cell) for cell in row))
        output().print(table)
        return 0

    def _rows(self) -> list[tuple[str, str, str, str]]:
        from mcetm.agents import SAC, TD3, RolloutSettings
        from mcetm.errors import UserError
        from mcetm.estimates import EstimateSettings
        from mcetm.pipeline.config import model_names
        from mcetm.pipeline.presets import algorithm_names, make_config, model_settings, part_settings
        from mcetm.settings import rows_of
        from mcetm.tasks.registry import suggestion

        name = self.name or ""
        usual = make_config(self.preset)
        parts: dict[str, tuple[str, Any]] = {
            "world": ("world", usual.world),
            "evaluation": ("evaluation", usual.evaluation),
            "estimates": ("", EstimateSettings()),
            "sac": ("algorithm.learner", part_settings(SAC, self.preset)),
            "td3": ("algorithm.learner", part_settings(TD3, self.preset)),
            "rollout": ("algorithm.rollout", part_settings(RolloutSettings, self.preset)),
        }
        if name in algorithm_names():
            return rows_of(make_config(self.preset, algo=name).algorithm, "algorithm")
        if name in model_names() or ":" in name:
            return rows_of(model_settings(name, self.preset), "model")
        if name in parts:
            place, found = parts[name]
            return rows_of(found, place)
        if name == "run":
            return rows_of(
                usual, "", skip=("model", "world", "algorithm", "evaluation", "baselines", "format")
            )
        known = [*algorithm_names(), *model_names(), "run", *parts]
        raise UserError(f"Nothing is called '{name}'{suggestion(name, known)}")

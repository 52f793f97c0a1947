"""`mcetm train` and `mcetm evaluate`."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from mcetm.cli.columns import ColumnOptions
from mcetm.console import say

if TYPE_CHECKING:
    from mcetm.data import Transitions
    from mcetm.data.columns import Columns
    from mcetm.pipeline.config import TrainConfig

Name = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Number = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Folder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
Flag = Annotated[bool, arg(help_behavior_hint="")]


_BESIDE_RESUME = ("resume", "source", "dataset", "task", "model", "steps", "log", "devices")
"""What may be said again: where log and training are now, what may be imported, and what holds anyway."""


@dataclass(frozen=True)
class Train:
    """Train a policy from a dataset: models of the world, calibration, policy, evaluation."""

    source: Positional[Annotated[str | None, arg(metavar="SOURCE", help_behavior_hint="")]] = None
    """A file, a name from `mcetm data list`, or a Minari id; pendulum-mixed by default."""

    dataset: Annotated[str | None, arg(metavar="SOURCE", help_behavior_hint="")] = None
    """The same as an option."""

    task: Name = None
    """Where returns are measured, if the source does not say: a task, a Gymnasium id, MODULE:CLASS or
    MODULE:ID; without one they are not."""

    algo: Annotated[str, arg(metavar="NAME")] = "mcetm"
    """The algorithm: mcetm, mobile, mopo, morel, empo, rambo, combo, cql, edac, td3bc, iql, bc, …"""

    model: Name = None
    """The transition model, where it is not the algorithm's usual one: gaussian, diffusion, standard-etm,
    manifold-etm, anchored-etm, or MODULE:CLASS of your own."""

    preset: Literal["quick", "fast", "paper", "paper-empo"] = "quick"
    """quick: minutes on two cores; fast: our best, for a GPU; paper: the paper's settings."""

    seeds: Number = None
    """How many agents to train, all in one program (3 by default)."""

    seed: int = 0
    """The first of the seeds."""

    steps: Number = None
    """Updates of the policy, where the preset's number does not suit."""

    set: Annotated[tuple[str, ...], arg(metavar="SETTING=VALUE", help_behavior_hint="")] = ()
    """Other settings, named as in config.json: --set algorithm.penalty=2 algorithm.rollout.horizon=3."""

    out: Folder = None
    """Folder of the run; runs/DATASET-ALGO-PRESET by default."""

    models: Folder = None
    """Use the models of this earlier run."""

    log: Annotated[
        tuple[Literal["csv", "tensorboard", "wandb", "mlflow"], ...],
        arg(metavar="WHERE", help_behavior_hint=""),
    ] = ()
    """Send the metrics of policies elsewhere too: csv, tensorboard, wandb, mlflow."""

    resume: Folder = None
    """Go on with this run; its own settings hold."""

    devices: Number = None
    """Devices that share the seeds, and the members of models; one by default."""

    columns: ColumnOptions = field(default_factory=ColumnOptions)

    def run(self) -> int:
        """Train, save, print."""
        from mcetm.compilation import keep_programs
        from mcetm.console import output
        from mcetm.data.card import make_card
        from mcetm.errors import UserError
        from mcetm.numbers import number
        from mcetm.pipeline.config import read_config
        from mcetm.pipeline.source import read_log, read_log_again
        from mcetm.pipeline.train import results_of, train_run
        from mcetm.report.training import show_results
        from mcetm.tasks.datasets import source_name
        from mcetm.tasks.own import remember
        from mcetm.training.devices import on_devices

        keep_programs()
        if self.resume is not None:
            self._check_resume()
            for name in (self.task, self.model):
                remember(name)
            folder, config = self.resume, read_config(self.resume / "config.json")
            if self.steps is not None and self.steps != config.algorithm.updates:
                raise UserError(
                    f"{folder} was begun for {config.algorithm.updates} updates, and what it has learned "
                    "depends on that number; for another, begin a new run with its models: "
                    f"mcetm train --models {folder} --steps {self.steps} --out …"
                )
            log = read_log_again(config, folder, self._given())
        else:
            remember(self.model)
            config = self._config()
            remember(config.task)
            folder = self.out or Path("runs") / f"{self._called(config)}-{self._name()}-{self.preset}"
            log = read_log(config, folder)  # bad data end here, before a folder is made
        mean = number(float(log.episode_returns.mean()))
        say(
            f"{source_name(config.dataset)}: {len(log):,} transitions in {log.num_episodes:,} episodes, "
            f"obs {log.obs_dim}, action {log.action_dim}, mean return {mean}"
        )
        say(_where_measured(log))
        card = make_card(log)
        for words in card.warnings:
            say(f"worth knowing: {words}")
        if self.resume is None and log.metadata.task is None and not self._asks_for_others():
            config = _alone(config)
        try:
            with on_devices(self.devices):
                run = train_run(config, folder, log, card, loggers=self.log)
        except KeyboardInterrupt:
            if (folder / "config.json").exists():
                say(f"stopped; go on with: mcetm train --resume {shlex.quote(str(folder))}")
            raise
        show_results(
            results_of(run), output(), normalised=run.task is not None and run.task.scores is not None
        )
        if run.task is None:
            say(
                "Returns were not measured, as no environment was named; for the policies as they are, "
                f"mcetm evaluate {folder} --task NAME measures them."
            )
            say(f"What the policies would earn can be estimated: mcetm estimate {folder}")
        say(f"report: {folder / 'report.html'}; in Python: mcetm.load_run('{folder}')")
        return 0

    def _asks_for_others(self) -> bool:
        """Whether other algorithms were asked for by name."""
        return any(change.startswith("baselines") for change in self.set)

    def _given(self) -> str | None:
        """The log that was named."""
        from mcetm.errors import UserError

        if self.source is not None and self.dataset is not None:
            raise UserError(f"Name one log: {self.source}, or --dataset {self.dataset}.")
        return self.dataset if self.source is None else self.source

    def _called(self, config: TrainConfig) -> str:
        """The log's part of the folder's name."""
        from mcetm.tasks.datasets import source_name

        return source_name(config.dataset).strip("/").replace("/", "-").replace(":", "-")

    def _name(self) -> str:
        """The algorithm, and the model where it was chosen."""
        return self.algo if self.model is None else f"{self.algo}-{self.model.replace(':', '-')}"

    def _check_resume(self) -> None:
        """What a run was begun with holds; nothing that was typed is ignored."""
        from dataclasses import fields

        from mcetm.errors import UserError

        for option in fields(self):
            fresh = option.default_factory() if callable(option.default_factory) else option.default
            given = getattr(self, option.name) != fresh
            if given and option.name not in _BESIDE_RESUME:
                raise UserError(f"--{option.name} cannot go with --resume: the run's own settings hold.")

    def _config(self) -> TrainConfig:
        from dataclasses import replace

        from mcetm.errors import UserError
        from mcetm.pipeline.config import changed, with_steps
        from mcetm.pipeline.models import check_models, earlier_models
        from mcetm.pipeline.presets import make_config
        from mcetm.pipeline.source import located

        for name in ("seeds", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"--{name} must be at least 1, not {value}.")
        given = self._given()
        config = make_config(
            self.preset,
            dataset=None if given is None else located(given),
            algo=self.algo,
            model=self.model,
            seeds=self.seeds,
            seed=self.seed,
            task=self.task,
        )
        if self.models is not None:
            config = replace(config, models_from=os.path.realpath(self.models))
        columns = None
        if given is not None:
            columns = self.columns.settings(given) or _described(given)
        elif self.columns != ColumnOptions():
            raise UserError("Options name columns, but no log is named; put the file first.")
        if columns is not None:
            config = replace(config, columns=columns)
        if self.steps is not None:
            config = with_steps(config, self.steps)
        config = changed(config, self.set)
        if config.models_from is not None:
            check_models(earlier_models(config), self.models or Path(config.models_from))
        return config


def _described(source: str) -> Columns | None:
    """What a file beside a dataset says of its columns."""
    from mcetm.data.columns import file_beside
    from mcetm.envs import described_columns

    columns = described_columns(source)
    if columns is not None:
        say(f"columns are as {file_beside(Path(source))} says")
    return columns


def _alone(config: TrainConfig) -> TrainConfig:
    """Without the other algorithms of the table: where nothing is measured, there is nothing to compare."""
    from dataclasses import replace

    if config.baselines:
        say(f"only {config.label} is trained: others are compared by their returns, in an environment")
    return replace(config, baselines=())


def _where_measured(log: Transitions) -> str:
    """Where returns are measured, or how to say where."""
    from mcetm.evaluation.returns import LONGEST
    from mcetm.tasks import get_task

    if log.metadata.task is None:
        return (
            "environment: none, so returns are not measured; --task names one (a Gymnasium id, MODULE:CLASS)"
        )
    task = get_task(log.metadata.task)
    cut = LONGEST if task.time_limit is None else task.time_limit
    own = " (it has no limit of its own)" if task.time_limit is None else ""
    steps = f", episodes of {cut:,} steps at most{own}"
    same = "" if task.name.startswith(task.env_id) else f" ({task.env_id})"
    return f"environment: {task.name}{same}{steps}"


@dataclass(frozen=True)
class Evaluate:
    """Run the policies of a run in their environment."""

    folder: Positional[Annotated[Path, arg(metavar="RUN")]]
    """Folder of a run, or of one policy."""

    episodes: int = 10
    """Episodes of each seed's policy."""

    seed: int = 0
    """Seed of the environments."""

    task: Name = None
    """The task, a Gymnasium id, MODULE:CLASS or MODULE:ID, where the policy does not say."""

    json: Flag = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate every seed's policy."""
        import json

        from mcetm.agents.policy import load_policy, seed_folders
        from mcetm.errors import UserError
        from mcetm.evaluation.returns import check_episodes, evaluate_policy
        from mcetm.numbers import with_spread
        from mcetm.pipeline.results import read_module_file
        from mcetm.tasks import get_task
        from mcetm.tasks.own import remember, task_in_file

        remember(self.task)
        check_episodes(self.episodes)
        folders = seed_folders(self.folder) or [self.folder]
        found = {}
        for folder in folders:
            policy = load_policy(folder)
            name = policy.about.get("task")
            if self.task is not None:
                task = get_task(self.task)
            elif name is not None:
                told = read_module_file(self.folder) or read_module_file(self.folder.parent.parent)
                task = task_in_file(str(name), folder / "policy.json", module_file=told)
            else:
                raise UserError(f"{folder} does not say its task; name one with --task.")
            result = evaluate_policy(task, policy.network, episodes=self.episodes, seed=self.seed)
            found[folder.name] = result.to_dict()
            if not self.json:
                score = "" if result.score is None else f", score {result.score:.1f} ± {result.score_std:.1f}"
                over = f" over {self.episodes} episodes" if self.episodes > 1 else ""
                say(f"{folder.name}: return {with_spread(result.returns)}{over}{score}")
        if self.json:
            print(json.dumps(found, indent=1))
        return 0

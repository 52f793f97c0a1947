"""`mcetm train` and `mcetm evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from mcetm.console import say

if TYPE_CHECKING:
    from mcetm.pipeline.config import TrainConfig

Name = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Number = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Folder = Annotated[Path | None, arg(metavar="DIR", help_behavior_hint="")]
Flag = Annotated[bool, arg(help_behavior_hint="")]


@dataclass(frozen=True)
class Train:
    """Train a policy from a dataset: models of the world, calibration, policy, evaluation."""

    dataset: Annotated[str, arg(metavar="SOURCE")] = "pendulum-mixed"
    """A file, a name from `mcetm data list`, or a Minari id."""

    task: Name = None
    """Task the data belong to, where the source does not say; without one returns are not measured."""

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

    def run(self) -> int:
        """Train, save, print."""
        from mcetm.compilation import keep_programs
        from mcetm.console import output
        from mcetm.errors import UserError
        from mcetm.pipeline.config import read_config
        from mcetm.pipeline.train import read_log, results_of, train_run
        from mcetm.report.training import show_results
        from mcetm.tasks.own import remember

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
        else:
            remember(self.model)
            config = self._config()
            remember(config.task)
            source = self.dataset if "/" not in self.dataset else self.dataset.strip("/").replace("/", "-")
            folder = self.out or Path("runs") / f"{Path(source).stem}-{self._name()}-{self.preset}"
        log = read_log(config, file=folder / "config.json")  # bad data end here, before a folder is made
        say(
            f"{config.dataset}: {len(log):,} transitions in {log.num_episodes:,} episodes, "
            f"obs {log.obs_dim}, action {log.action_dim}, mean return {log.episode_returns.mean():,.1f}"
        )
        try:
            run = train_run(config, folder, log, loggers=self.log)
        except KeyboardInterrupt:
            say(f"stopped; go on with: mcetm train --resume {folder}")
            raise
        show_results(
            results_of(run), output(), normalised=run.task is not None and run.task.scores is not None
        )
        if run.task is None:
            print("Returns were not measured: the dataset has no task (name one with --task).")
        say(f"report: {folder / 'report.html'}; the policy: mcetm.load_policy('{folder}')")
        return 0

    def _name(self) -> str:
        """The algorithm, and the model where it was chosen."""
        return self.algo if self.model is None else f"{self.algo}-{self.model.replace(':', '-')}"

    def _check_resume(self) -> None:
        """What a run was begun with holds; nothing that was typed is ignored."""
        from dataclasses import fields

        from mcetm.errors import UserError

        for option in fields(self):
            given = getattr(self, option.name) != option.default
            if given and option.name not in ("resume", "task", "model", "steps", "log"):
                raise UserError(f"--{option.name} cannot go with --resume: the run's own settings hold.")

    def _config(self) -> TrainConfig:
        from dataclasses import replace

        from mcetm.errors import UserError
        from mcetm.pipeline.config import changed, with_steps
        from mcetm.pipeline.models import check_models, earlier_models
        from mcetm.pipeline.presets import make_config

        for name in ("seeds", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"--{name} must be at least 1, not {value}.")
        config = make_config(
            self.preset,
            dataset=self.dataset,
            algo=self.algo,
            model=self.model,
            seeds=self.seeds,
            seed=self.seed,
            task=self.task,
        )
        if self.models is not None:
            config = replace(config, models_from=str(self.models.resolve()))
        if self.steps is not None:
            config = with_steps(config, self.steps)
        config = changed(config, self.set)
        if config.models_from is not None:
            check_models(earlier_models(config), self.models or Path(config.models_from))
        return config


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
    """The task, where the policy does not say."""

    json: Flag = False
    """Print JSON."""

    def run(self) -> int:
        """Evaluate every seed's policy."""
        import json

        from mcetm.agents.policy import load_policy, seed_folders
        from mcetm.errors import UserError
        from mcetm.evaluation.returns import check_episodes, evaluate_policy
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
                task = task_in_file(str(name), folder / "policy.json")
            else:
                raise UserError(f"{folder} does not say its task; name one with --task.")
            result = evaluate_policy(task, policy.network, episodes=self.episodes, seed=self.seed)
            found[folder.name] = result.to_dict()
            if not self.json:
                score = "" if result.score is None else f", score {result.score:.1f} ± {result.score_std:.1f}"
                say(f"{folder.name}: return {result.mean:,.1f} ± {result.std:,.1f}{score}")
        if self.json:
            print(json.dumps(found, indent=1))
        return 0

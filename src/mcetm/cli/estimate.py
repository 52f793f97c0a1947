"""`mcetm estimate` and `mcetm select`: what policies would earn, and which to deploy, without a simulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

if TYPE_CHECKING:
    from mcetm.data.transitions import Transitions
    from mcetm.estimates import EstimateSettings

Runs = Positional[Annotated[tuple[Path, ...], arg(metavar="RUN [RUN ...]", help_behavior_hint="")]]
Flag = Annotated[bool, arg(help_behavior_hint="")]
Settings = Annotated[tuple[str, ...], arg(metavar="SETTING=VALUE", help_behavior_hint="")]
Name = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]


@dataclass(frozen=True)
class Estimate:
    """Estimate what the policies of runs would earn, from a log alone, and say what can be believed."""

    runs: Runs
    """Folders of finished runs of `mcetm train`."""

    log: Annotated[str | None, arg(metavar="SOURCE", help_behavior_hint="")] = None
    """The log to estimate from; the run's own by default."""

    task: Name = None
    """Task of that log, where it does not say."""

    seed: int = 0
    """Of all that is random."""

    set: Settings = ()
    """Settings of the estimators: --set fqe.steps=8000 horizon=200 discount=0.99."""

    json: Flag = False
    """Print JSON, and nothing else."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("estimate")
    """Where the figure goes: estimate.png and estimate.svg. Each run keeps its estimates in estimates/."""

    def run(self) -> int:
        """Read, estimate, write, print."""
        import json

        from mcetm.compilation import keep_programs
        from mcetm.console import output, say
        from mcetm.errors import UserError
        from mcetm.pipeline.estimate import estimate_runs
        from mcetm.pipeline.page import make_page
        from mcetm.report.estimates import draw_estimates, show_estimates

        if not self.runs:
            raise UserError("Name the folders of the runs to estimate: mcetm estimate RUN [RUN ...].")
        keep_programs()
        results = estimate_runs(
            self.runs, read_given(self.log, self.task), settings=settings_of(self.set), seed=self.seed
        )
        draw_estimates(self.out / "estimate.png", results)
        for run in self.runs:
            if (run / "report.html").is_file():
                make_page(run)  # its first screen says what was estimated
        if self.json:
            print(json.dumps([found.to_dict() for found in results], indent=1, allow_nan=False))
            return 0
        for found in results:
            show_estimates(found, output())
        kept = ", ".join(str(run / "estimates") for run in self.runs)
        say(f"wrote {self.out / 'estimate.png'} (and .svg); every estimate as JSON in {kept}")
        return 0


def read_given(source: str | None, task: str | None) -> Transitions | None:
    """The log that is named, which must have actions and rewards."""
    from mcetm.envs import load_dataset
    from mcetm.errors import UserError
    from mcetm.tasks.own import remember

    remember(task)
    if source is None:
        if task is not None:
            raise UserError("--task is for the log of --log; a run knows its own.")
        return None
    log = load_dataset(source, task=task)
    log.require("reward", "action")
    return log


def settings_of(changes: tuple[str, ...]) -> EstimateSettings:
    """The usual settings of estimators with some of them changed."""
    from mcetm.estimates import EstimateSettings
    from mcetm.pipeline.config import put_all
    from mcetm.settings import from_plain, to_plain

    return from_plain(EstimateSettings, put_all(to_plain(EstimateSettings()), changes))


@dataclass(frozen=True)
class Select:
    """Which policy to deploy, by what is estimated of each; and which real episode to run next."""

    runs: Runs
    """Folders of finished runs of `mcetm train`. Those without estimates are estimated first."""

    tournament: Flag = False
    """Estimate anew with the best of several settings of fitted Q evaluation, found on held-out rows."""

    budget: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """Begin a plan for so many real episodes; it is kept in DIR/plan.json."""

    measured: Annotated[tuple[str, ...], arg(metavar="POLICY=RETURN", help_behavior_hint="")] = ()
    """Returns of real episodes, in the order in which they were run; each is added to the plan."""

    seed: int = 0
    """Of all that is random."""

    set: Settings = ()
    """Settings of the estimators, where they have to be asked."""

    json: Flag = False
    """Print JSON, and nothing else."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("select")
    """Where plan.json is."""

    def run(self) -> int:
        """Read or estimate, choose, plan, print."""
        import json

        from mcetm.compilation import keep_programs
        from mcetm.console import output, say
        from mcetm.errors import UserError
        from mcetm.estimates import begin_plan, choose, with_measured
        from mcetm.pipeline.select import candidates
        from mcetm.report.estimates import show_choice, show_plan

        if not self.runs:
            raise UserError("Name the folders of the runs to select from: mcetm select RUN [RUN ...].")
        keep_programs()
        found = candidates(
            self.runs, settings=settings_of(self.set), seed=self.seed, tournament=self.tournament
        )
        choice = choose(found)
        path, plan = self.out / "plan.json", None
        if self.budget is not None or self.measured or path.exists():
            plan = with_measured(begin_plan(path, found, self.budget), self.measured)
            plan.save(path)
        if self.json:
            content = {**choice.to_dict(), "plan": None if plan is None else plan.to_dict()}
            print(json.dumps(content, indent=1, allow_nan=False))
            return 0
        show_choice(choice, output(), advise=plan is None or not plan.measured)
        if plan is not None:
            show_plan(plan, output())
            say(f"wrote {path}; tell what an episode earned with: --measured POLICY=RETURN")
        return 0

"""`mcetm study`: the experiments, one command each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg, subcommand


@dataclass(frozen=True)
class Contact:
    """Real cube tosses: one-step and open-loop errors of every transition model."""

    data: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """cube_tosses.npz; looked for in $MCETM_DATA/contactnets by default."""

    preset: Literal["quick", "fast"] = "quick"
    """quick: minutes on two cores; fast: full size, for a GPU."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/contact")
    """Where results.json and the figure go."""

    seed: int = 0
    """The first of the seeds."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm.report.contact import show_contact
        from mcetm.studies.contact import run_contact

        results = run_contact(self.out, data=self.data, preset=self.preset, seed=self.seed)
        show_contact(results, output())
        _say_written(self.out, "contact")
        return 0


@dataclass(frozen=True)
class Didactic:
    """The discontinuous function of the paper's section 5.1: every transition model beside the truth."""

    preset: Literal["quick", "paper"] = "quick"
    """quick: minutes on two cores; paper: full size, for a GPU."""

    transitions: int | None = None
    """Rows of the log: 100,000 by default, as in the paper's appendix; its text says 10000."""

    seeds: int | None = None
    """Independent trainings of every model; 5 by default."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/didactic")
    """Where results.json and the figures go."""

    seed: int = 0
    """Seed of the log and of the trainings."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm.report.didactic import show_didactic
        from mcetm.studies.didactic import run_didactic

        results = run_didactic(
            self.out, preset=self.preset, transitions=self.transitions, seeds=self.seeds, seed=self.seed
        )
        show_didactic(results, output())
        _say_written(self.out, "didactic", "didactic-errors")
        return 0


@dataclass(frozen=True)
class Landscape:
    """The same function embedded in many dimensions: how steeply energies rise off the manifold."""

    preset: Literal["quick", "paper"] = "quick"
    """quick: minutes on two cores; paper: full size, for a GPU."""

    state_dim: int = 20
    """Dimensions that a state is embedded in."""

    action_dim: int = 10
    """Dimensions that an action is embedded in."""

    chain: int | None = None
    """Langevin steps behind a rival in training: 50 in the paper and in preset `paper`, 4 in `quick`."""

    seeds: int | None = None
    """Independent trainings of every model: 3 in preset `quick`, 5 in `paper`."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/landscape")
    """Where results.json and the figures go."""

    seed: int = 0
    """Seed of the embedding, the log and the trainings."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm.report.landscape import show_landscape
        from mcetm.studies.landscape import run_landscape

        results = run_landscape(
            self.out,
            preset=self.preset,
            state_dim=self.state_dim,
            action_dim=self.action_dim,
            chain=self.chain,
            seeds=self.seeds,
            seed=self.seed,
        )
        show_landscape(results, output())
        _say_written(self.out, "landscape", "landscape-numbers")
        return 0


@dataclass(frozen=True)
class Bound:
    """Random finite MDPs: how often the paper's theory is true, how tight its bound is, who returns most."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 20 MDPs of each family for each amount of data; full: 100."""

    mdps: int | None = None
    """As many MDPs instead."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/bound")
    """Where results.json and the figures go."""

    seed: int = 0
    """Of the MDPs and their data."""

    def run(self) -> int:
        """Measure, write, print."""
        from mcetm.console import output
        from mcetm.report.bound import FIGURES, show_bound
        from mcetm.studies.bound import run_bound

        results = run_bound(self.out, preset=self.preset, mdps=self.mdps, seed=self.seed)
        show_bound(results, output())
        drawn = ", ".join(f"{name}.png" for name in FIGURES)
        print(f"wrote {self.out / 'results.json'} and {drawn} (and .svg) beside it")
        return 0


_Task = Literal["hopper", "walker2d", "halfcheetah"]
_Level = Literal["random", "medium", "medium-replay", "medium-expert"]
_Model = Literal["mlp", "gaussian", "longer", "standard", "plain", "anchored", "diffusion"]


@dataclass(frozen=True)
class CrossDataset:
    """One-step errors of every model on every level of a locomotion task, beside the paper's 48 rows."""

    preset: Literal["quick", "fast", "paper"] = "quick"
    """quick: minutes on two cores; fast: full sizes, for a GPU; paper: the paper's training lengths."""

    tasks: Annotated[tuple[_Task, ...], arg(help_behavior_hint="")] = ()
    """What to run now: by default hopper in preset `quick`, all three in the others."""

    levels: Annotated[tuple[_Level, ...], arg(help_behavior_hint="")] = ()
    """What to train on now: by default random and medium in preset `quick`, all four in the others."""

    models: Annotated[tuple[_Model, ...], arg(help_behavior_hint="")] = ()
    """What to train now; all by default. `plain` and `anchored` are MC-ETM as in `mcetm train`'s presets
    `paper` and `fast`."""

    source: Literal["collected", "d4rl"] = "collected"
    """Our own collection of the levels, or D4RL's files."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/cross-dataset")
    """Where results.json and the figures go; what earlier runs left there is shown too."""

    trained: Annotated[Path | None, arg(metavar="DIR")] = None
    """Keep trainings here and go on where they were stopped; for one run at a time."""

    seed: int = 0
    """Seed of the splits and of the trainings."""

    def run(self) -> int:
        """Train, test, write, print."""
        from mcetm.console import output
        from mcetm.report.cross_dataset import show_cross_dataset
        from mcetm.studies.cross_dataset import run_cross_dataset

        results = run_cross_dataset(
            self.out,
            preset=self.preset,
            tasks=self.tasks,
            levels=self.levels,
            models=self.models,
            source=self.source,
            trained=self.trained,
            seed=self.seed,
        )
        show_cross_dataset(results, output())
        curves = ["cross-dataset-curves"] if results["chains"] and results["shares"] else []
        _say_written(self.out, "cross-dataset", *curves)
        return 0


@dataclass(frozen=True)
class Rollouts:
    """Open-loop rollouts of every model on a locomotion task: errors up to 200 steps ahead, and a film."""

    preset: Literal["quick", "fast", "paper"] = "quick"
    """quick: minutes on two cores; fast: full sizes, for a GPU; paper: the paper's training lengths."""

    tasks: Annotated[tuple[_Task, ...], arg(help_behavior_hint="")] = ()
    """What to run now: by default hopper in preset `quick`, all three in the others."""

    level: _Level = "medium-expert"
    """The dataset's level."""

    models: Annotated[tuple[_Model, ...], arg(help_behavior_hint="")] = ()
    """What to train now; all by default. `plain` and `anchored` are MC-ETM as in `mcetm train`'s presets
    `paper` and `fast`."""

    source: Literal["collected", "d4rl"] = "collected"
    """Our own collection of the level, or D4RL's file."""

    pictures: Literal["auto", "mujoco", "drawn"] = "auto"
    """mujoco: rendered, which needs a GL library; drawn: from the bodies' positions; auto: as can be."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/rollouts")
    """Where results.json, the figures and the films go; what earlier runs left there is shown too."""

    trained: Annotated[Path | None, arg(metavar="DIR")] = None
    """Keep trainings here and go on where they were stopped; for one run at a time."""

    seed: int = 0
    """Seed of the splits and of the trainings."""

    def run(self) -> int:
        """Train, follow, write, print."""
        from mcetm.console import output
        from mcetm.report.rollouts import show_rollouts
        from mcetm.studies.rollouts import run_rollouts

        results = run_rollouts(
            self.out,
            preset=self.preset,
            tasks=self.tasks,
            level=self.level,
            models=self.models,
            source=self.source,
            pictures=self.pictures,
            trained=self.trained,
            seed=self.seed,
        )
        show_rollouts(results, output())
        films = [f"rollouts-{task}" for task in results["films"]]
        _say_written(self.out, "rollouts", *films)
        print(f"and {', '.join(str(self.out / f'{film}.gif') for film in films)}")
        return 0


@dataclass(frozen=True)
class EnergyError:
    """Scores of distrust against true errors, on held-out data and ever further off them."""

    preset: Literal["quick", "fast", "paper"] = "quick"
    """quick: hopper, minutes on two cores; fast: models of `mcetm train`, for a GPU; paper: the paper's."""

    tasks: tuple[_Task, ...] = ()
    """Tasks; by default hopper in preset `quick`, all three in the others."""

    level: _Level = "medium"
    """Level of the data that the models are trained on; the others are off it."""

    energy: Literal["anchored", "plain", "literal"] | None = None
    """The energy: `anchored` by default, `plain`, the paper's with EMPO's meaning, in preset `paper`;
    `literal` is the paper's to the letter."""

    members: int | None = None
    """Energies in the ensemble, fewer for less time: 3 in preset `quick`, 5 in the others."""

    run_folder: Annotated[Path | None, arg(name="run", metavar="RUN", help_behavior_hint="")] = None
    """Look at a finished run: its models, critic and policy instead of fresh ones."""

    seeds: int | None = None
    """Independent trainings: 2 in preset `quick`, 3 in the others."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("studies/energy-error")
    """Where results.json, tables.md and the figures go."""

    trained: Annotated[Path | None, arg(metavar="DIR")] = None
    """Keep trainings here and go on where they were stopped; for one run at a time."""

    seed: int = 0
    """The first of the seeds."""

    def run(self) -> int:
        """Train, look, write, print."""
        from mcetm.console import output
        from mcetm.report.energy_error import show_energy_error
        from mcetm.studies.energy_error import run_energy_error

        results = run_energy_error(
            self.out,
            preset=self.preset,
            tasks=self.tasks or None,
            level=self.level,
            energy=self.energy,
            members=self.members,
            run=self.run_folder,
            seeds=self.seeds,
            trained=self.trained,
            seed=self.seed,
        )
        show_energy_error(results, output())
        tasks = (f"energy-error-{name.split('-')[0]}" for name in results["datasets"])
        _say_written(self.out, "energy-error", *tasks)
        return 0


@dataclass(frozen=True)
class ListStudies:
    """List the studies there are."""

    def run(self) -> int:
        """Print one line for each."""
        for name, study in STUDIES.items():
            print(f"{name}: {study.__doc__}")
        return 0


STUDIES = {
    "contact": Contact,
    "didactic": Didactic,
    "landscape": Landscape,
    "bound": Bound,
    "cross-dataset": CrossDataset,
    "rollouts": Rollouts,
    "energy-error": EnergyError,
}


def _say_written(out: Path, *figures: str) -> None:
    drawn = ", ".join(str(out / f"{figure}.png") for figure in figures)
    print(f"wrote {out / 'results.json'} and {drawn} (and .svg)")


@dataclass(frozen=True)
class Study:
    """Run an experiment: a table, a figure and a results.json each."""

    command: (
        Annotated[Contact, subcommand("contact")]
        | Annotated[Didactic, subcommand("didactic")]
        | Annotated[Landscape, subcommand("landscape")]
        | Annotated[Bound, subcommand("bound")]
        | Annotated[CrossDataset, subcommand("cross-dataset")]
        | Annotated[Rollouts, subcommand("rollouts")]
        | Annotated[EnergyError, subcommand("energy-error")]
        | Annotated[ListStudies, subcommand("list")]
    )

    def run(self) -> int:
        """Run the chosen study."""
        from mcetm.compilation import keep_programs

        keep_programs()
        return self.command.run()

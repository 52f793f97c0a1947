"""The paper's energies after 100 epochs: one-step errors, what chains and epochs do, and rollouts.

    python benchmarks/paper_energies.py hopper paper-empo --trained DIR [--record]

One energy with the settings of `mcetm study energy-error --preset paper --members 1` (`paper`: to the letter,
`--energy literal` there), on the same rows. A training that the study has left in DIR is used; without one
this trains, keeping snapshots for the errors after fewer epochs. Tests are those of
`mcetm study cross-dataset --preset fast`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics import EnergyTransitionModel, GaussianModel
from mcetm.envs import load_dataset
from mcetm.evaluation.detection import auroc
from mcetm_experiments.cross_dataset.onestep import STAGES, STARTS, LevelRows, with_steps
from mcetm_experiments.cross_dataset.study import PRESETS as CROSS
from mcetm_experiments.cross_dataset.study import CrossConfig
from mcetm_experiments.energy_error.presets import PRESETS, with_energy
from mcetm_experiments.energy_error.study import baselines_of
from mcetm_experiments.rollouts.study import HORIZONS, curves, guarded, some_windows
from mcetm_experiments.shared.baselines import Draw, point
from mcetm_experiments.shared.locomotion import Logs
from mcetm_experiments.shared.openloop import open_loop
from record import record

EPOCHS = (1, 5, 10, 20, 50, 100)
ROWS = 1000
VARIED = ("medium", "random")
"""Rows and levels for what is varied; the table itself has as many as the study."""


def main() -> None:
    """Train, or find what was trained, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("hopper", "halfcheetah", "walker2d"))
    parser.add_argument("reading", choices=("paper-empo", "paper"))
    parser.add_argument("--trained", type=Path, required=True)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    name = f"{asked.task}-medium"
    config = PRESETS["paper"](name)
    if asked.reading == "paper":
        config = replace(config, models=with_energy(config.models, "literal", small=False))
    energy = replace(config.models.energy, members=1)
    config = replace(config, models=replace(config.models, energy=energy))
    train, holdout = load_dataset(name, infos=True).split(config.holdout, seed=0)
    known, _ = holdout.split(0.5, seed=0)
    snapshots = Snapshots(asked.trained / "snapshots", f"{asked.task}-{asked.reading}", energy.steps)
    baselines = baselines_of(train, known, config, 0, asked.trained, snapshots)
    model, regressor = baselines.plain.model, baselines.gaussian.model
    tests, cross = _tests(asked.task, train)
    few = _thinned(tests)
    record(
        f"paper_energies-{asked.task}-{asked.reading}",
        {
            "device": jax.devices()[0].device_kind,
            "training": {
                "energy": baselines.plain.clock()[-1],
                "history": [baselines.plain.history[i] for i in (0, 9, 29, -1)],
            },
            "tests": {
                "regressor": _errors(tests, point(regressor)),
                "energy": _errors(tests, point(model)),
                "through the autoencoder": _errors(tests, eqx.Partial(_decoded, model, regressor)),
            },
            "epochs": {
                str(epochs): _after(few, replace(model, members=snapshots.read(model, epochs)))
                for epochs in EPOCHS
                if snapshots.path(epochs).exists()
            },
            "chains": _chains(few, model, cross),
            "lengths": cross.lengths,
            "open loop": {
                "horizons": HORIZONS,
                "no change": _follow(holdout, lambda obs, action, key: obs),
                "regressor": _follow(holdout, point(regressor)),
                "energy": _follow(holdout, point(model)),
            },
        },
    )


class Snapshots:
    """The energies as they were after some epochs (to the nearest 1,000 steps), kept while they are trained.

    The count is of this process: a training that was stopped must begin anew for them.
    """

    def __init__(self, folder: Path, name: str, steps: int) -> None:
        self.folder, self.name, self.steps, self._chunks = folder, name, steps, 0

    def __call__(self, model: EnergyTransitionModel) -> dict[str, Any]:
        """After every 1,000 steps of training."""
        self._chunks += 1
        for epochs in EPOCHS:
            if self._chunks == max(1, round(epochs * self.steps / 100_000)):
                self.folder.mkdir(parents=True, exist_ok=True)
                eqx.tree_serialise_leaves(self.path(epochs), model.members)
        return {}

    def path(self, epochs: int) -> Path:
        """Of the energies after so many epochs."""
        return self.folder / f"{self.name}-{epochs:03d}.eqx"

    def read(self, model: EnergyTransitionModel, epochs: int) -> Any:
        """The members as they were then."""
        return eqx.tree_deserialise_leaves(self.path(epochs), model.members)


def _tests(task: str, train: Transitions) -> tuple[LevelRows, CrossConfig]:
    """Held-out rows of every level, none of them trained on."""
    cross = CROSS["fast"]()
    logs: Logs = cross.logs
    tests = {level: logs.divide(logs.load(task, level, Path("studies/data")))[1] for level in cross.tests}
    return LevelRows.of(tests, train, cross.rows, seed=0), cross


def _thinned(tests: LevelRows) -> LevelRows:
    """Fewer rows of fewer levels, from everywhere in their logs."""
    some = lambda rows: tuple(x[:: max(1, len(x) // ROWS)] for x in rows)  # noqa: E731
    return replace(tests, rows={level: some(tests.rows[level]) for level in VARIED})


def _errors(tests: LevelRows, draw: Draw) -> dict[str, dict[str, float]]:
    found = tests.errors(draw, key=jax.random.key(0))
    return {level: {n: e[n] for n in ("mean", "median", "normalised")} for level, e in found.items()}


def _decoded(model: EnergyTransitionModel, regressor: GaussianModel, obs: Any, action: Any, key: Any) -> Any:
    """Where a chain through latent space begins: the regressor's prediction, encoded and decoded."""
    assert model.autoencoder is not None  # noqa: S101 (manifold negatives need one)
    start = regressor.predict(obs, action)
    return model.autoencoder.decode(model.autoencoder.encode(start))


def _after(tests: LevelRows, model: EnergyTransitionModel) -> dict[str, Any]:
    """Errors, and whether energies tell other levels' pairs from held-out ones."""
    energies = {level: _lowest(model, *rows[:2]) for level, rows in tests.rows.items()}
    told = {
        level: float(auroc(energies["medium"], found))
        for level, found in energies.items()
        if level != "medium"
    }
    return {"errors": _errors(tests, point(model)), "auroc": told}


@eqx.filter_jit
def _lowest(model: EnergyTransitionModel, obs: Any, action: Any) -> Any:
    keys = jax.random.split(jax.random.key(0), len(obs))
    return jax.vmap(lambda o, a, k: model.minimum(o, a, key=k).mean())(obs, action, keys)


def _chains(tests: LevelRows, model: EnergyTransitionModel, cross: CrossConfig) -> dict[str, list[Any]]:
    """As the study has them, and with this energy's own steps where those do not fall."""
    ways = {"falling steps": cross.chain}
    if model.config.ambient.first == model.config.ambient.last:
        ways["constant steps"] = replace(model.config.ambient, noise=0.0)
    return {
        f"{start}, {stages}, {way}": [
            _errors(tests, point(with_steps(model, start, stages, steps, chain))) for steps in cross.lengths
        ]
        for way, chain in ways.items()
        for start in STARTS
        for stages in STAGES
    }


def _follow(holdout: Transitions, draw: Draw) -> list[float]:
    """Median error in spreads of the states, at the horizons."""
    windows = some_windows(holdout, max(HORIZONS), 100, seed=0)
    found = open_loop(draw, project=guarded)(windows, jax.random.key(0))
    errors = curves(found, np.asarray(windows.ground_truth), Statistics.of(holdout).obs.std)["normalised"]
    return [float(errors[1][h - 1]) for h in HORIZONS]


if __name__ == "__main__":
    main()

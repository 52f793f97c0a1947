"""Calls of the library with what cannot be, each with words of the sentence that must come of it."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from mcetm.dynamics import Samples, TransitionModel
from tests.pipeline.runs import write_policy

mcetm: Any = importlib.import_module("mcetm")
export_model: Any = importlib.import_module("mcetm.export").export_model
"""Without types, as every call here is wrong."""
NAN, INF = float("nan"), float("inf")


class Still(TransitionModel):
    """Nothing ever moves: three numbers observed, one action."""

    count: int = 2

    @property
    def num_members(self) -> int:
        return self.count

    @property
    def widths(self) -> tuple[int, int]:
        return 3, 1

    def draw(self, obs: Any, action: Any, count: int, *, key: Any) -> Samples:
        return Samples(jnp.broadcast_to(obs, (self.count, count, 3)))


@cache
def log(obs: int = 3) -> Any:
    arrays = {"obs": np.zeros((30, obs)), "action": np.zeros((30, 1)), "reward": np.zeros(30)}
    return mcetm.Transitions.from_arrays(**arrays)


def spoken(value: Any) -> Any:
    """A policy of which something is said."""
    return dataclasses.replace(mcetm.load_policy(Path(sys.argv[1])), about={"notes": value})


STILL: Any = Still()
ALONE: Any = Still(1)
BC = mcetm.BC(width=4, depth=1, steps=2, batch_size=4)
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "fit: no settings": (lambda: mcetm.fit(None, log()), "fit takes settings"),
    "fit: a class": (lambda: mcetm.fit(mcetm.BC, log()), "fit takes settings"),
    "fit: a network that takes no widths": (
        lambda: mcetm.fit(BC, log(), network=dict),
        "network= is called with",
    ),
    "fit: devices of truth": (
        lambda: mcetm.fit(BC, log(), devices=True),
        "a number of devices or a list of JAX's own, not True",
    ),
    "preset: an algorithm of a number": (lambda: mcetm.preset("quick", algo=3), "'algo' should be"),
    "World.of: a folder of a number": (
        lambda: mcetm.World.of(STILL, log(), holdout=log(), folder=3),
        "'folder' should be a folder",
    ),
    "require: no such field": (lambda: log().require("nobody"), "has no field 'nobody'"),
    "fit: devices of words": (lambda: mcetm.fit(BC, log(), devices="x"), "a list of JAX's own, not 'x'"),
    "train: nothing": (lambda: mcetm.train(None, "x"), "'config' should be a TrainConfig"),
    "train: a log of words": (lambda: mcetm.train(mcetm.preset("quick"), "x", log="y"), "'log' should be"),
    "register_task: nothing": (lambda: mcetm.register_task(None), "'task' should be a Task"),
    "fit: a word": (lambda: mcetm.fit("bc", log()), "fit takes settings"),
    "fit: no log": (lambda: mcetm.fit(BC, None), "'train' should be a log"),
    "fit: an array": (lambda: mcetm.fit(BC, np.zeros((5, 3))), "'train' should be a log .*, not a ndarray"),
    "fit: a share": (lambda: mcetm.fit(mcetm.GaussianEnsemble(), log(), holdout=0.1), "'holdout' should be"),
    "fit: other columns": (
        lambda: mcetm.fit(mcetm.GaussianEnsemble(), log(), holdout=log(2)),
        "'holdout' is of 2 observations and 1 actions, and the log has 3 and 1",
    ),
    "fit: a model for a world": (lambda: mcetm.fit(mcetm.MOPO(), log(), world=STILL), "'world' should be"),
    "fit: seed": (lambda: mcetm.fit(BC, log(), seed=-1), "'seed' should be a whole number from 0"),
    "fit: seed of words": (lambda: mcetm.fit(BC, log(), seed="x"), "'seed' should be .*, not 'x'"),
    "fit: half a seed": (lambda: mcetm.fit(BC, log(), seeds=1.5), "'seeds' should be .*, not 1.5"),
    "fit: seeds of truth": (lambda: mcetm.fit(BC, log(), seeds=True), "'seeds' should be .*, not True"),
    "fit: seeds beyond the last": (
        lambda: mcetm.fit(BC, log(), seed=2**31 - 1, seeds=2),
        "'seeds' should be a whole number from 1 to 1, not 2",
    ),
    "task: of words": (
        lambda: mcetm.Task("x", "y", "z", (), (), 1),
        "has a width, a bound or a time limit that is no number",
    ),
    "scores: of words": (lambda: mcetm.ReferenceScores("a", "b", "x"), "'random' should be a number"),
    "fit: folder": (lambda: mcetm.fit(BC, log(), folder=3), "'folder' should be a path, not 3"),
    "fit: callbacks": (
        lambda: mcetm.fit(BC, log(), callbacks=["x"]),
        "callbacks= and network= are functions",
    ),
    "fit: network": (lambda: mcetm.fit(BC, log(), network="x"), "callbacks= and network= are functions"),
    "world: settings for a model": (
        lambda: mcetm.World.of(mcetm.GaussianEnsemble(), log(), holdout=log()),
        "'model' should be a trained transition model",
    ),
    "world: other columns": (
        lambda: mcetm.World.of(STILL, log(2), holdout=log(2)),
        "of states of 3 and actions of 1 numbers, and arrays has 2 and 1",
    ),
    "world: task": (
        lambda: mcetm.World.of(STILL, log(), holdout=log(), task="x"),
        "'task' should be a Task",
    ),
    "evaluate: nobody": (lambda: mcetm.evaluate(None, "pendulum"), "'?policies=? should be policies"),
    "evaluate: a word": (lambda: mcetm.evaluate(["x"], "pendulum"), "policies= should be policies"),
    "estimate: a log": (lambda: mcetm.estimate([log()], log()), "policies= should be policies"),
    "split: seed": (lambda: log().split(0.1, seed=-1), "'seed' should be a whole number"),
    "split: a word": (lambda: log().split("x"), "'holdout' should be a share"),
    "collect: half a step": (lambda: mcetm.collect("pendulum", 1.5), "'steps' should be a whole number"),
    "collect: no task": (lambda: mcetm.collect(None, 10), "'task' should be"),
    "load: a number": (lambda: mcetm.load_dataset(3), "'source' should be a path or the name of a dataset"),
    "load: bytes": (lambda: mcetm.load_policy(b"x"), "'path' should be a path, not b'x'"),
    "load: a seed of words": (lambda: mcetm.load_policy("x", seed="0"), "'seed' should be a whole number"),
    "run: nothing": (lambda: mcetm.load_run(None), "'folder' should be a path, not None"),
    "task: nothing": (lambda: mcetm.get_task(None), "'name' should be the name of a task"),
    "card: nothing": (lambda: mcetm.make_card(None), "'transitions' should be a log"),
    "load: a folder": (
        lambda: mcetm.load_dataset("hopper-medium-v2", folder=3),
        "'folder' should be a path, not 3",
    ),
    "arrays: rows of words": (
        lambda: mcetm.Transitions.from_arrays(np.zeros((20, 1)), min_transitions="x"),
        "'min_transitions' should be a whole number from 0",
    ),
    "arrays: fewer rows than none": (
        lambda: mcetm.Transitions.from_arrays(np.zeros((20, 1)), min_transitions=-1),
        "'min_transitions' should be a whole number from 0",
    ),
    "arrays: a limit of words": (
        lambda: mcetm.Transitions.from_arrays(np.zeros((20, 1)), time_limit="x"),
        "'time_limit' should be a whole number from 1",
    ),
    "episodes: far": (lambda: log().select_episodes([10**9]), "'episodes' should be a whole number from 0"),
    "episodes: from the end": (lambda: log().select_episodes([-1]), "'episodes' should be .*, not -1"),
    "metadata: names of another width": (
        lambda: log().with_metadata(obs_names=("level",)),
        "obs_names: has 1 names, but obs has 3 columns",
    ),
    "metadata: NaN for a bound": (
        lambda: log().with_metadata(action_low=(NAN,), action_high=(1.0,)),
        "action: has a bound that is no number",
    ),
    "metadata: bounds of another width": (
        lambda: log().with_metadata(action_low=(-1.0, -1.0), action_high=(1.0, 1.0)),
        "action: has 1 columns, but the action space has 2",
    ),
    "world: one member and nothing else": (
        lambda: mcetm.World.of(ALONE, log(), holdout=log(), config=mcetm.WorldSettings(pairs=None)),
        "A model of one member without energies cannot say where it is to be trusted",
    ),
    "fit: a single member that is asked where it disagrees": (
        lambda: mcetm.fit(mcetm.MOReL(), log(), world=mcetm.World(ALONE, None)),
        "MOReL stops where the members of a model do not agree, and this model has a single one",
    ),
    "fit: a single member without energies": (
        lambda: mcetm.fit(mcetm.MCETM(), log(), world=mcetm.World(ALONE, None)),
        "MC-ETM stops where the members of a model do not agree",
    ),
    "config: a single member that is asked where it disagrees": (
        lambda: mcetm.TrainConfig(
            algorithm=mcetm.MOReL(), model=mcetm.GaussianEnsemble(elites=1), dataset="x"
        ),
        "MOReL stops where the members of a model do not agree",
    ),
    "config: a single denoiser": (
        lambda: mcetm.TrainConfig(
            algorithm=mcetm.MCETM(), model=mcetm.DiffusionEnsemble(members=1), dataset="x"
        ),
        "MC-ETM stops where the members of a model do not agree",
    ),
    "head: from the end": (lambda: log().head(-1), "'rows' should be a whole number from 1"),
    "policy: a class for chance": (
        lambda: mcetm.load_policy(Path(sys.argv[1]))(np.zeros(3), rng=np.random.default_rng),
        "'rng' should be a generator",
    ),
    "trust: fewer reasons than none": (
        lambda: mcetm.Trust(np.ones(2), 0.5).because(-1),
        "'most' should be a whole number from 1",
    ),
    "network: of another width": (
        lambda: mcetm.fit(BC, log(), network=lambda i, o, *, key: lambda x: x),
        "network= should make networks from 3 numbers to 2, and this one gives 3",
    ),
    "estimate: networks that no memory holds": (
        lambda: mcetm.estimate(
            mcetm.load_policy(Path(sys.argv[1])),
            log(),
            settings=mcetm.EstimateSettings(
                fqe=dataclasses.replace(mcetm.EstimateSettings().fqe, width=10**8)
            ),
        ),
        "The setting 'fqe.width' is 100,000,000, and with that its networks would take",
    ),
    "policy: nothing is said of it": (
        lambda: dataclasses.replace(mcetm.load_policy(Path(sys.argv[1])), about=None).save("p"),
        "'about' should be a dictionary",
    ),
    "policy: NaN is said of it": (
        lambda: spoken(NAN).save("p"),
        r"What is said of the policy \(about\) cannot be written",
    ),
    "policy: an object is said of it": (
        lambda: spoken(object()).save("p"),
        r"What is said of the policy \(about\) cannot be written",
    ),
    "read_policy: a number": (lambda: mcetm.read_policy(3), "'path' should be a path, not 3"),
    "save: nowhere": (lambda: log().save(None), "'path' should be a path"),
    "save: NUL": (lambda: log().save("a\0.npz"), "Cannot write 'a"),
    "samples: none": (
        lambda: STILL.samples(np.zeros(3), np.zeros(1), 0),
        "'count' should be a whole number",
    ),
    "samples: no key": (
        lambda: STILL.samples(np.zeros(3), np.zeros(1), 1, key=0),
        "key= should be a key of JAX",
    ),
    "samples: ragged": (lambda: STILL.samples([[1, 2], [3]], [[1]], 1), "States and actions are arrays"),
    "samples: words": (lambda: STILL.samples("x", "y", 1), "States and actions are arrays of numbers"),
    "samples: complex": (
        lambda: STILL.samples(np.zeros(3, complex), np.zeros(1), 1),
        "States and actions are arrays of numbers",
    ),
    "export: samples": (lambda: export_model(STILL, "x.stablehlo", samples=10**9), "'samples' should be"),
    "export: no model": (lambda: export_model(None, "x.stablehlo"), "'model' should be a trained"),
    "bounds: NaN": (
        lambda: mcetm.Transitions.from_arrays(
            np.zeros((20, 1)),
            np.zeros((20, 1)),
            metadata=mcetm.Metadata(action_low=(NAN,), action_high=(1.0,)),
        ),
        "action: has a bound that is no number in single precision",
    ),
    "bounds: too large": (
        lambda: mcetm.Transitions.from_arrays(
            np.zeros((20, 1)), np.zeros((20, 1)), columns={"action_low": [-1e300], "action_high": [1e300]}
        ),
        "action: has a bound that is no number in single precision",
    ),
    "episodes: numbers": (lambda: mcetm.Transitions.from_episodes([1]), "episode 0: is a int, not a dict"),
    "episodes: misspelt": (
        lambda: mcetm.Transitions.from_episodes([{"obs": np.zeros((9, 1)), "actions": np.zeros((8, 1))}]),
        "has 'actions', and no such field is known; did you mean 'action'",
    ),
    "settings: an estimator twice": (
        lambda: mcetm.EstimateSettings(estimators=("fqe", "fqe")),
        "names the estimator 'fqe' twice",
    ),
}

ROWS: list[Any] = [
    None,
    "x",
    [1, [2]],
    [1j, 0, 0],
    ["1", "2", "3"],
    [None, 0, 0],
    b"abc",
    [NAN, 0, 0],
    [INF, 0, 0],
]
for _row in ROWS:
    CALLS[f"policy: {_row!r}"] = (
        lambda row=_row: mcetm.load_policy(Path(sys.argv[1]))(row),
        "The policy (takes 3 numbers|has no action to give: an observation is not finite)",
    )


def main() -> None:
    """Make every call; what came of each is printed as JSON."""
    write_policy(Path(sys.argv[1]), "pendulum")
    found = {}
    for name, (act, _) in CALLS.items():
        try:
            found[name] = ["returned", repr(act())]
        except Exception as error:
            found[name] = [type(error).__name__, str(error)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()

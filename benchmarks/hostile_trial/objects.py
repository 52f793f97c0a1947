"""Objects of the library that are asked or made with what cannot be: worlds, runs, settings, logs, exports."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hostile_trial.library import SMALL, called
from hostile_trial.trial import Case, Place

mcetm: Any = importlib.import_module("mcetm")
"""Without types, as every call here is wrong."""
NAN, INF = float("nan"), float("inf")
Act = Callable[[Any, Any, Place], Any]


def _far(count: int = 3) -> Any:
    return np.full((count, 3), 1e6)


class _Raises:
    """An array that is none."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise ValueError("no")

    def __len__(self) -> int:
        return 3


def policies() -> Iterator[Case]:
    """A policy and its trust."""
    fallbacks: dict[str, Any] = {
        "above the bounds": np.full(1, 2.5), "below the bounds": [-9.0], "a row beyond": lambda o: np.full((len(o), 1), 99.0), "complex": np.array([1j]), "truth": True, "text of a number": "1.0", "nothing": [], "a dict": {"a": 1}, "three rows for two": lambda o: np.zeros((7, 1)), "a generator": (x for x in [0.0]), "raises a word": _Raises(),
        "exits": lambda o: (_ for _ in ()).throw(SystemExit(3)), "a policy of another width": lambda o: np.zeros((len(o), 4)), "masked": np.ma.masked_all(1), "bytes": b"1", "a set": {0.0}, "a class": dict, "NaN rows": lambda o: np.full((len(o), 1), NAN), "infinite": np.array([INF]), "huge": np.array([1e39]),
    }  # fmt: skip
    for name, value in fallbacks.items():
        yield called(
            f"objects, policy: fallback {name}",
            lambda log, run, place, v=value: run.policies[0](_far(), fallback=v),
        )
    obs: dict[str, Any] = {
        "raises": _Raises(), "structured": np.zeros(3, [("a", "f4")]), "masked": np.ma.masked_all(3), "a memoryview of bytes": memoryview(b"abc"), "a column": np.zeros((3, 1)), "strings of NaN": ["nan"] * 3, "decimals too large": [10**400, 0, 0], "none rows": [None], "a string of 3": "123", "a list of arrays": [np.zeros(3), np.zeros(2)], "a row of rows": [[[0, 0, 0]]], "float16 inf": np.full(3, np.inf, np.float16), "void": np.zeros(3, "V4"), "timedelta": np.zeros(3, "m8[s]"),
    }  # fmt: skip
    for name, value in obs.items():
        yield called(f"objects, policy: policy({name})", lambda log, run, place, v=value: run.policies[0](v))
        yield called(
            f"objects, policy: trust({name})",
            lambda log, run, place, v=value: run.policies[0].trust(v) and None,
        )
    for name, rng in {
        "a seed": 3,
        "a word": "x",
        "old": np.random.RandomState(0),
        "a class": np.random.default_rng,
    }.items():
        yield called(
            f"objects, policy: rng {name}", lambda log, run, place, r=rng: run.policies[0](np.zeros(3), rng=r)
        )
    for name, count in {"0": 0, "-1": -1, "words": "x", "half": 1.5, "None": None, "huge": 10**9}.items():
        yield called(
            f"objects, policy: because({name})",
            lambda log, run, place, c=count: run.policies[0].trust(_far()).because(c) and None,
            "either" if name == "huge" else "refused",
        )
    spoilt: dict[str, Act] = {
        "no about": lambda log, run, place: mcetm.Policy(run.policies[0].network, None).save(place.folder / "p"), "about of objects": lambda log, run, place: mcetm.Policy(run.policies[0].network, {"x": object()}).save(place.folder / "p"), "about of NaN": lambda log, run, place: mcetm.Policy(run.policies[0].network, {"x": NAN}).save(place.folder / "p"),
        "save over a file": lambda log, run, place: run.policies[0].save(place.material / "log.npz"), "save into a pipe": lambda log, run, place: (os.mkfifo(place.folder / "p"), run.policies[0].save(place.folder / "p")), "export to a folder": lambda log, run, place: run.policies[0].export(place.material), "export to nothing": lambda log, run, place: run.policies[0].export(".npz"), "export of bytes": lambda log, run, place: run.policies[0].export(b"x.npz"),
        "export to a device": lambda log, run, place: ((place.folder / "x.h").symlink_to("/dev/full"), run.policies[0].export(place.folder / "x.h")), "export a keyword": lambda log, run, place: run.policies[0].export("int.h"), "load a policy of another": lambda log, run, place: mcetm.load_policy(place.material / "log.npz"), "load a seed of truth": lambda log, run, place: mcetm.load_policy(place.material / "bc", seed=True), "load -0.0": lambda log, run, place: mcetm.load_policy(place.material / "bc", seed=-0.0),
    }  # fmt: skip
    for name, act in spoilt.items():
        yield called(
            f"objects, policy: {name}",
            act,
            "either" if name in ("export a keyword", "save into a pipe") else "refused",
        )


def models() -> Iterator[Case]:
    """A model and a world of the material, asked with what cannot be."""
    zeros = np.zeros((4, 3)), np.zeros((4, 1))
    asks: dict[str, Act] = {
        "reward of another width": lambda log, run, place: run.world.reward(np.zeros((4, 3)), np.zeros((4, 1)), np.zeros((4, 5))), "reward of words": lambda log, run, place: run.world.reward("x", "y", "z"), "ends of words": lambda log, run, place: run.world.ends("x", "y", "z"), "expected error of words": lambda log, run, place: run.world.expected_error("x", "y"),
        "pair score of NaN": lambda log, run, place: run.world.pair_score(np.full((4, 3), NAN), zeros[1]) is None or None, "draw of -1": lambda log, run, place: run.world.model.draw(*zeros, -1, key=_key()) and None, "draw of words": lambda log, run, place: run.world.model.draw(*zeros, "x", key=_key()) and None, "draw of another width": lambda log, run, place: run.world.model.draw(np.zeros(7), np.zeros(1), 2, key=_key()) and None, "means of another width": lambda log, run, place: run.world.model.means(np.zeros(7), np.zeros(1), key=_key()) is None,
        "means without a key": lambda log, run, place: run.world.model.means(*zeros) is None, "samples of actions alone": lambda log, run, place: run.world.model.samples(zeros[1], zeros[0], 2) and None, "samples of one number": lambda log, run, place: run.world.model.samples(1.0, 1.0, 2) and None, "samples of a list of keys": lambda log, run, place: run.world.model.samples(*zeros, 2, key=[_key()]) and None, "samples of truth": lambda log, run, place: run.world.model.samples(*zeros, True) and None,
        "samples of strings": lambda log, run, place: run.world.model.samples(np.full((4, 3), "1"), zeros[1], 2) and None, "samples of 2^31": lambda log, run, place: run.world.model.samples(*zeros, 2**31) and None, "samples that raise": lambda log, run, place: run.world.model.samples(_Raises(), zeros[1], 2) and None, "samples of a dict": lambda log, run, place: run.world.model.samples({"a": 1}, zeros[1], 2) and None, "samples of masked": lambda log, run, place: run.world.model.samples(np.ma.masked_all((4, 3)), zeros[1], 2) and None,
        "part of nobody": lambda log, run, place: run.world.model.part("nobody") and None, "disagreement of words": lambda log, run, place: run.world.model.disagreement("x", "y"), "total spread of NaN": lambda log, run, place: run.world.model.total_spread(np.full(3, NAN), np.zeros(1), key=_key()) is None,
    }  # fmt: skip
    may = {"pair score of NaN", "part of nobody", "total spread of NaN", "means without a key", "samples of masked"}  # fmt: skip
    for name, act in asks.items():
        yield called(f"objects, world: {name}", act, "either" if name in may else "refused")
    of: dict[str, Act] = {
        "nothing": lambda log, run, place: mcetm.World.of(), "no log": lambda log, run, place: mcetm.World.of(run.world.model), "None": lambda log, run, place: mcetm.World.of(None, log, holdout=log), "a path": lambda log, run, place: mcetm.World.of(str(run.folder), log, holdout=log), "no holdout": lambda log, run, place: mcetm.World.of(run.world.model, log), "holdout None": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=None), "config a dict": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, config={}),
        "seed NaN": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, seed=NAN), "folder a number": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, folder=3), "folder a file": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, folder=place.material / "log.npz", config=_quick()), "task a number": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, task=3), "another log": lambda log, run, place: mcetm.World.of(run.world.model, _log2(), holdout=_log2()),
        "odd": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, odd=1), "a log without rewards": lambda log, run, place: mcetm.World.of(run.world.model, _bare(), holdout=_bare(), config=_quick()), "one row held out": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=_one(log), config=_quick()),
    }  # fmt: skip
    python = {"nothing", "no log", "no holdout", "odd"}  # Python's own words for a call with other arguments
    for name, act in of.items():
        if name not in python:
            yield called(
                f"objects, world: World.of {name}", act, "either" if name == "one row held out" else "refused"
            )


def _key() -> Any:
    return importlib.import_module("jax").random.key(0)


def _quick() -> Any:
    from hostile_trial.material import ESTIMATES
    from mcetm.cli.estimate import settings_of

    return settings_of(ESTIMATES).world


def _log2() -> Any:
    rng = np.random.default_rng(0)
    return mcetm.Transitions.from_arrays(rng.normal(size=(60, 2)), rng.uniform(-1, 1, (60, 1)), np.zeros(60))


def _bare() -> Any:
    rng = np.random.default_rng(0)
    return mcetm.Transitions.from_arrays(rng.normal(size=(60, 3)), rng.uniform(-1, 1, (60, 1)))


def _one(log: Any) -> Any:
    return log.head(1)


def fits() -> Iterator[Case]:
    """`fit`, `train`, `preset`, and settings made by hand."""
    bc = lambda **more: mcetm.BC(**{**SMALL, **more})  # noqa: E731
    gaussian = lambda **more: mcetm.GaussianEnsemble(**{**SMALL, "members": 2, "elites": 2, **more})  # noqa: E731
    calls: dict[str, Act] = {
        "a folder of another run": lambda log, run, place: mcetm.fit(bc(), log, folder=run.folder), "a folder that is a file": lambda log, run, place: mcetm.fit(bc(), log, folder=place.material / "log.npz"), "a folder with a NUL": lambda log, run, place: mcetm.fit(bc(), log, folder="a\0"), "a folder that cannot be": lambda log, run, place: mcetm.fit(bc(), log, folder="/proc/nowhere/x"), "seeds huge": lambda log, run, place: mcetm.fit(bc(), log, seeds=10**9),
        "seeds of a list": lambda log, run, place: mcetm.fit(bc(), log, seeds=[0, 1]), "seed NumPy": lambda log, run, place: mcetm.fit(bc(), log, seed=np.float32(1)), "seed array": lambda log, run, place: mcetm.fit(bc(), log, seed=np.array([1])), "seed + seeds too large": lambda log, run, place: mcetm.fit(bc(), log, seed=2**31 - 1, seeds=2), "devices 0": lambda log, run, place: mcetm.fit(bc(), log, devices=0), "devices words": lambda log, run, place: mcetm.fit(bc(), log, devices="x"), "devices 99": lambda log, run, place: mcetm.fit(bc(), log, devices=99), "devices truth": lambda log, run, place: mcetm.fit(bc(), log, devices=True),
        "callbacks None": lambda log, run, place: mcetm.fit(bc(), log, callbacks=None), "a callback": lambda log, run, place: mcetm.fit(bc(), log, callbacks=print), "no holdout for a model": lambda log, run, place: mcetm.fit(gaussian(), log), "one row held out": lambda log, run, place: mcetm.fit(gaussian(), log, holdout=_one(log)), "another log held out": lambda log, run, place: mcetm.fit(gaussian(), log, holdout=_log2()), "the model as world": lambda log, run, place: mcetm.fit(mcetm.MOPO(), log, world=run.world.model),
        "no world": lambda log, run, place: mcetm.fit(mcetm.MOPO(), log), "a world for BC": lambda log, run, place: mcetm.fit(bc(), log, world=run.world), "a world of words": lambda log, run, place: mcetm.fit(mcetm.MOPO(), log, world="x"), "a world of another log": lambda log, run, place: mcetm.fit(mcetm.MOPO(), _log2(), world=run.world), "EMPO of a Gaussian": lambda log, run, place: mcetm.fit(mcetm.EMPO(), log, world=run.world), "no actions": lambda log, run, place: mcetm.fit(bc(), mcetm.Transitions.from_arrays(np.zeros((30, 3)))), "no rewards": lambda log, run, place: mcetm.fit(mcetm.CQL(), _bare()), "settings of a run": lambda log, run, place: mcetm.fit(run.settings, log), "an agent": lambda log, run, place: mcetm.fit(run.policies[0], log),
        "a trained model": lambda log, run, place: mcetm.fit(run.world.model, None, holdout=log), "a network of nothing": lambda log, run, place: mcetm.fit(bc(), log, network=lambda *a, **k: None), "a network of another width": lambda log, run, place: mcetm.fit(bc(), log, network=lambda *a, **k: lambda x: x), "a network class": lambda log, run, place: mcetm.fit(bc(), log, network=dict),
        "width words": lambda log, run, place: bc(width="8"), "width half": lambda log, run, place: bc(width=8.5), "width truth": lambda log, run, place: bc(width=True), "width NumPy": lambda log, run, place: bc(width=np.float64(8)), "steps huge": lambda log, run, place: bc(steps=10**30), "learning rate NaN": lambda log, run, place: bc(learning_rate=NAN), "learning rate inf": lambda log, run, place: bc(learning_rate=INF), "learning rate 0": lambda log, run, place: bc(learning_rate=0), "an unknown one": lambda log, run, place: bc(nobody=1), "a number for BC": lambda log, run, place: mcetm.BC(3),
        "elites": lambda log, run, place: gaussian(elites=9), "members 0": lambda log, run, place: gaussian(members=0), "a learner of words": lambda log, run, place: mcetm.MOPO(learner="sac"), "a learner of a class": lambda log, run, place: mcetm.MOPO(learner=mcetm.SAC), "a penalty of -1": lambda log, run, place: mcetm.MOPO(penalty=-1), "set afterwards": lambda log, run, place: setattr(bc(), "width", 3), "preset nobody": lambda log, run, place: mcetm.preset("nobody"), "preset of None": lambda log, run, place: mcetm.preset(None), "preset algo": lambda log, run, place: mcetm.preset("quick", algo=3), "preset path": lambda log, run, place: mcetm.preset("../quick"),
        "preset seeds": lambda log, run, place: mcetm.preset("quick", seeds=0), "TrainConfig of words": lambda log, run, place: mcetm.TrainConfig(algorithm="bc"), "TrainConfig of a model": lambda log, run, place: mcetm.TrainConfig(algorithm=mcetm.GaussianEnsemble()), "train None": lambda log, run, place: mcetm.train(None, "x"), "train words": lambda log, run, place: mcetm.train("quick", "x"), "train nowhere": lambda log, run, place: mcetm.train(mcetm.preset("quick", dataset="nowhere.npz", algo="bc"), "x"), "train folder": lambda log, run, place: mcetm.train(mcetm.preset("quick", algo="bc"), 3), "train log": lambda log, run, place: mcetm.train(mcetm.preset("quick", algo="bc"), "x", log="y"),
        "load_run of a file": lambda log, run, place: mcetm.load_run(place.material / "log.npz"), "load_run elsewhere": lambda log, run, place: mcetm.load_run(place.material / "bc", dataset="nowhere.npz").log, "load_run of another log": lambda log, run, place: mcetm.load_run(place.material / "bc", dataset=place.material / "plain.npz").log, "load_run of a number": lambda log, run, place: mcetm.load_run(place.material / "bc", dataset=3).log, "collect words": lambda log, run, place: mcetm.collect("pendulum", "x"), "collect -1": lambda log, run, place: mcetm.collect("pendulum", -1), "collect policy": lambda log, run, place: mcetm.collect("pendulum", 10, 3), "collect seed": lambda log, run, place: mcetm.collect("pendulum", 10, seed=-1),
        "collect processes": lambda log, run, place: mcetm.collect("pendulum", 10, processes="x"), "collect a policy of ours": lambda log, run, place: mcetm.collect("pendulum", 10, run.policies[0], processes=1), "evaluate episodes": lambda log, run, place: mcetm.evaluate(run.policies[0], "pendulum", episodes=None), "evaluate a task": lambda log, run, place: mcetm.evaluate(run.policies[0], mcetm.Task), "evaluate a dict": lambda log, run, place: mcetm.evaluate({"a": run.policies[0]}, "pendulum", episodes=1), "evaluate a policy that lies": lambda log, run, place: mcetm.evaluate(lambda o: np.full((len(o), 1), NAN), "pendulum", episodes=1),
        "estimate discount": lambda log, run, place: mcetm.EstimateSettings(discount=NAN), "estimate horizon": lambda log, run, place: mcetm.EstimateSettings(horizon=0), "estimate folder": lambda log, run, place: mcetm.estimate(run.policies[0], log, folder=3, settings=_estimates()), "estimate task": lambda log, run, place: mcetm.estimate(run.policies[0], log, odd=3), "estimate names": lambda log, run, place: mcetm.estimate({"a": 3}, log, settings=_estimates()), "estimate a function": lambda log, run, place: mcetm.estimate(lambda o: o, log, settings=_estimates()), "get_task NUL": lambda log, run, place: mcetm.get_task("a\0"), "get_task endless": lambda log, run, place: mcetm.get_task("x" * 10**6), "register nothing": lambda log, run, place: mcetm.register_task(None),
        "read_policy words": lambda log, run, place: mcetm.read_policy("nowhere", "pendulum"), "read_policy a number": lambda log, run, place: mcetm.read_policy(3), "Task of words": lambda log, run, place: mcetm.Task("x", "y", "z", (), (), 1), "Task NaN": lambda log, run, place: mcetm.Task("x", "y", 3, (NAN,), (1.0,), 100), "Task crossed": lambda log, run, place: mcetm.Task("x", "y", 3, (1.0,), (-1.0,), 100), "scores equal": lambda log, run, place: mcetm.ReferenceScores(1.0, 1.0, "x"), "scores NaN": lambda log, run, place: mcetm.ReferenceScores(NAN, 1.0, "x"), "Columns of nothing": lambda log, run, place: mcetm.Columns(), "Columns of numbers": lambda log, run, place: mcetm.Columns(obs=[1]),
        "Columns bounds": lambda log, run, place: mcetm.Columns(obs=["a"], action=["b"], action_low=[1], action_high=[0]), "load columns words": lambda log, run, place: mcetm.load_dataset(place.material / "plant.csv", columns="x"), "load columns dict": lambda log, run, place: mcetm.load_dataset(place.material / "plant.csv", columns={"obs": ["nobody"]}), "load min": lambda log, run, place: mcetm.load_dataset(place.material / "log.npz", min_transitions="x"), "load min -1": lambda log, run, place: mcetm.load_dataset(place.material / "log.npz", min_transitions=-1), "load limit": lambda log, run, place: mcetm.load_dataset(place.material / "log.npz", time_limit="x"), "load folder": lambda log, run, place: mcetm.load_dataset("hopper-medium-v2", folder=3), "load task": lambda log, run, place: mcetm.load_dataset(place.material / "log.npz", task=3),
        "one axis": lambda log, run, place: mcetm.Transitions.from_arrays(np.zeros(30), np.zeros(30)), "one action axis": lambda log, run, place: mcetm.Transitions.from_arrays(np.zeros((30, 2)), np.zeros(30)), "select -1": lambda log, run, place: log.select_episodes([-1]), "select far": lambda log, run, place: log.select_episodes([10**9]), "select words": lambda log, run, place: log.select_episodes("x"), "head -1": lambda log, run, place: log.head(-1), "head words": lambda log, run, place: log.head("x"), "split all": lambda log, run, place: log.split(holdout=1.0), "require nobody": lambda log, run, place: log.require("nobody"), "metadata odd": lambda log, run, place: log.with_metadata(odd=1), "metadata NaN": lambda log, run, place: log.with_metadata(action_low=(NAN,), action_high=(1.0,)), "names twice": lambda log, run, place: log.with_metadata(obs_names=("a", "a", "b")), "names short": lambda log, run, place: log.with_metadata(obs_names=("a",)),
    }  # fmt: skip
    may = {"a world for BC", "a trained model", "preset of None", "one row held out", "get_task endless", "width NumPy", "no holdout for a model", "set afterwards", "evaluate a dict", "collect a policy of ours", "estimate task", "metadata odd", "a folder of another run", "head -1", "a number for BC", "Columns of nothing"}  # fmt: skip
    for name, act in calls.items():
        yield called(
            f"objects, calls: {name}",
            lambda log, run, place, a=act: a(log, run, place) and None,
            "either" if name in may else "refused",
        )


def _estimates() -> Any:
    from hostile_trial.material import ESTIMATES
    from mcetm.cli.estimate import settings_of

    return settings_of(ESTIMATES)


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (policies, models, fits):
        yield from make()

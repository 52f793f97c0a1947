"""Calls of the library with arrays, policies and folders that cannot be."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hostile_trial.material import ESTIMATES
from hostile_trial.trial import Case, Place
from mcetm.cli.estimate import settings_of

mcetm: Any = importlib.import_module("mcetm")
"""Without types, as every call here is wrong."""
NAN, INF = float("nan"), float("inf")
SMALL: dict[str, Any] = {"width": 8, "depth": 1, "steps": 20, "batch_size": 8}


@cache
def _log(material: str) -> Any:
    return mcetm.load_dataset(f"{material}/log.npz")


@cache
def _run(material: str) -> Any:
    return mcetm.load_run(f"{material}/mopo")


def called(
    name: str, act: Callable[[Any, Any, Place], Any], expect: Any = "refused", words: tuple[str, ...] = ()
) -> Case:
    """A case that calls the library in this process."""

    def do(place: Place) -> Any:
        material = str(place.material)
        found = act(_log(material), _run(material), place)
        for array in found if isinstance(found, tuple) else (found,):
            if isinstance(array, np.ndarray) and array.dtype.kind == "f" and not np.isfinite(array).all():
                raise AssertionError(f"returned {array.ravel()[:5]}")
        return None

    return Case(name.split(":")[0], name.split(": ", 1)[1], do, expect, words)


def arrays() -> Iterator[Case]:
    """`Transitions.from_arrays` and its kin."""
    good = {"obs": np.zeros((20, 2)), "action": np.zeros((20, 1)), "reward": np.zeros(20)}
    changes: dict[str, dict[str, Any]] = {
        "obs None": {"obs": None}, "obs a word": {"obs": "hello"}, "obs ragged": {"obs": [[1.0], [1.0, 2.0]]}, "obs of objects": {"obs": np.array([[object()]] * 20)}, "obs a set": {"obs": {1, 2}}, "obs a dict": {"obs": {"a": [1]}}, "obs a generator": {"obs": (x for x in [1])},
        "obs a number": {"obs": 3}, "obs of three axes": {"obs": np.zeros((20, 2, 2))}, "obs complex": {"obs": np.zeros((20, 2), complex)}, "obs of no rows": {"obs": np.zeros((0, 2)), "action": None, "reward": None}, "obs NaN": {"obs": np.full((20, 2), NAN)}, "obs too large": {"obs": np.full((20, 2), 1e300)},
        "action longer": {"action": np.zeros((21, 1))}, "action of words": {"action": [["a"]] * 20}, "action inf": {"action": np.full((20, 1), INF)}, "reward two columns": {"reward": np.zeros((20, 2))}, "reward None inside": {"reward": [None] * 20}, "reward 1e39": {"reward": np.full(20, 1e39)},
        "next_obs narrow": {"next_obs": np.zeros((20, 1))}, "next_obs NaN": {"next_obs": np.full((20, 2), NAN)}, "terminated 2": {"terminated": np.full(20, 2)}, "terminated words": {"terminated": ["x"] * 20}, "terminated None": {"terminated": [None] * 20}, "truncated short": {"truncated": np.zeros(3, bool)},
        "truncated two axes": {"truncated": np.zeros((20, 1), bool)}, "dates": {"obs": np.full((20, 2), np.datetime64("2020"))}, "strings of numbers": {"obs": np.full((20, 2), "1.0")}, "bytes": {"obs": b"abc"}, "masked": {"reward": np.ma.masked_all(20)}, "metadata a dict": {"metadata": {"source": 3}},
        "metadata bounds": {"metadata": mcetm.Metadata(action_low=(0.0, 0.0), action_high=(1.0, 1.0))}, "episode of lists": {"episode": [[1]] * 20}, "time_limit": {"time_limit": 0}, "odd": {"odd": 1},
    }  # fmt: skip
    may = {"strings of numbers", "episode of lists"}
    for name, change in changes.items():
        yield called(
            f"library, arrays: {name}",
            lambda log, run, place, c=change: mcetm.Transitions.from_arrays(**{**good, **c}),
            "either" if name in may else "refused",
        )
    for name, episodes in {
        "nothing": [],
        "a word": "x",
        "numbers": [1, 2],
        "no obs": [{"action": [[1]]}],
        "one observation": [{"obs": [[1.0]], "action": []}],
        "T observations": [{"obs": np.zeros((5, 2)), "action": np.zeros((5, 1))}],
        "other widths": [
            {"obs": np.zeros((6, 2)), "action": np.zeros((5, 1))},
            {"obs": np.zeros((6, 3)), "action": np.zeros((5, 1))},
        ],
        "odd key": [{"obs": np.zeros((6, 2)), "acton": np.zeros((5, 1))}],
        "terminated a list": [{"obs": np.zeros((6, 2)), "terminated": [True] * 5}],
        "NaN": [{"obs": np.full((6, 2), NAN)}],
    }.items():
        yield called(
            f"library, arrays: episodes, {name}",
            lambda log, run, place, e=episodes: mcetm.Transitions.from_episodes(e),
            "either" if name == "terminated a list" else "refused",
        )
    for name, bounds in {
        "crossed": ((1.0,), (0.0,)),
        "NaN": ((NAN,), (1.0,)),
        "inf": ((-INF,), (INF,)),
        "widths": ((0.0,), (1.0, 1.0)),
        "equal": ((1.0,), (1.0,)),
        "words": (("a",), ("b",)),
        "None inside": ((None,), (1.0,)),
        "one": ((0.0,), None),
    }.items():
        yield called(
            f"library, arrays: bounds {name}",
            lambda log, run, place, b=bounds: mcetm.Transitions.from_arrays(
                **good, metadata=mcetm.Metadata(action_low=b[0], action_high=b[1])
            ),
            "either" if name in ("inf", "equal") else "refused",
        )
    for name, frame in {"a list": [1], "None": None, "a dict": {"obs_0": [1.0] * 20}, "a word": "x"}.items():
        yield called(
            f"library, arrays: frame, {name}",
            lambda log, run, place, f=frame: mcetm.Transitions.from_dataframe(f),
        )
    for holdout in (0, 1, -1, 2, NAN, INF, "x", None, 1e-9, 0.999999):
        yield called(
            f"library, arrays: split({holdout!r})",
            lambda log, run, place, h=holdout: log.split(holdout=h, seed=0) and None,
            "either" if holdout in (1e-9, 0.999999) else "refused",
        )
    for seed in (-1, 1.5, "x", None, 2**70):
        yield called(
            f"library, arrays: split, seed {seed!r}",
            lambda log, run, place, s=seed: log.split(holdout=0.1, seed=s) and None,
            "either",
        )
    for path in (
        "",
        "x",
        "x.csv",
        "/proc/nowhere/x.npz",
        "/dev/full",
        "/dev/null",
        "a\x00.npz",
        3,
        None,
        "x" * 300 + ".npz",
    ):
        yield called(
            f"library, arrays: save({str(path)[:20]!r})", lambda log, run, place, p=path: log.save(p)
        )
    for source in (None, 3, [], {}, b"x", "", "x\x00", Path("nothing"), object(), True):
        yield called(
            f"library, arrays: load_dataset({source!r:.20})",
            lambda log, run, place, s=source: mcetm.load_dataset(s),
        )


def policies() -> Iterator[Case]:
    """A policy, its trust, its export and what it is compared with."""
    obs: dict[str, Any] = {
        "None": None, "a word": "x", "a number": 3.0, "empty": [], "no rows": np.zeros((0, 3)), "two": np.zeros(2), "four": np.zeros((5, 4)), "three axes": np.zeros((2, 2, 3)), "NaN": np.full(3, NAN), "inf": [INF, 0, 0], "too large": [1e300, 0, 0], "large": [1e38, 1e38, 1e38], "complex": np.zeros(3, complex) + 1j,
        "objects": np.array([object()] * 3), "words": ["a", "b", "c"], "digits": ["1", "2", "3"], "ragged": [[1, 2, 3], [1]], "a dict": {"obs": [1, 2, 3]}, "truth": [True, False, True], "integers": np.zeros(3, np.int64), "dates": np.full(3, np.datetime64("2020")), "a generator": (i for i in range(3)), "bytes": b"abc", "None inside": [None, 0, 0], "one NaN row": [[0, 0, 0], [NAN, 0, 0]],
    }  # fmt: skip
    may = {"no rows", "large", "truth", "integers", "digits"}
    for name, value in obs.items():
        expect = "either" if name in may else "refused"
        yield called(
            f"library, policy: policy({name})", lambda log, run, place, v=value: run.policies[0](v), expect
        )
        yield called(
            f"library, policy: loaded policy({name})",
            lambda log, run, place, v=value: mcetm.load_policy(run.folder, seed=0)(v),
            expect,
        )
        yield called(
            f"library, policy: trust({name})",
            lambda log, run, place, v=value: np.asarray(run.policies[0].trust(v).trusted),
            expect,
        )
    for name, fallback in {
        "of another width": np.zeros(2),
        "a word": "x",
        "NaN": np.full(1, NAN),
        "raises": lambda o: 1 / 0,
        "returns None": lambda o: None,
        "None rows": [None],
        "too far": np.full(1, 1e6),
    }.items():
        yield called(
            f"library, policy: fallback, {name}",
            lambda log, run, place, f=fallback: run.policies[0](np.full((3, 3), 1e6), fallback=f),
            "either" if name == "raises" else "refused",
        )
    for path in (
        "",
        "x",
        "x.txt",
        "/proc/nowhere/x.npz",
        "/dev/full",
        3,
        None,
        "x" * 300 + ".h",
        "a\x00.npz",
        "folder/",
    ):
        yield called(
            f"library, policy: export({str(path)[:20]!r})",
            lambda log, run, place, p=path: run.policies[0].export(p) and None,
        )
        yield called(
            f"library, policy: save({str(path)[:20]!r})",
            lambda log, run, place, p=path: run.policies[0].save(p),
            "either",
        )
    for path in ("", "x", "/", "/dev/zero", 3, None, "a\x00", b"x"):
        yield called(
            f"library, policy: load_policy({path!r})", lambda log, run, place, p=path: mcetm.load_policy(p)
        )
        yield called(
            f"library, policy: load_run({path!r})", lambda log, run, place, p=path: mcetm.load_run(p)
        )
    for seed in (9, -1, "0", 1.0, NAN):
        yield called(
            f"library, policy: load_policy(seed={seed!r})",
            lambda log, run, place, s=seed: mcetm.load_policy(run.folder, seed=s),
            "either" if seed == 1.0 else "refused",
        )
    for name, (given, task, options) in {
        "nothing": ([], "pendulum", {}), "None": (None, "pendulum", {}), "words": (["x"], "pendulum", {}), "an unknown task": (0, "nobody", {}), "task None": (0, None, {}), "task a number": (0, 3, {}), "another width": (0, "hopper", {}), "episodes 0": (0, "pendulum", {"episodes": 0}), "episodes -1": (0, "pendulum", {"episodes": -1}),
        "episodes 1.5": (0, "pendulum", {"episodes": 1.5}), "episodes word": (0, "pendulum", {"episodes": "3"}), "episodes huge": (0, "pendulum", {"episodes": 10**12}), "seed -1": (0, "pendulum", {"episodes": 1, "seed": -1}), "seed word": (0, "pendulum", {"episodes": 1, "seed": "x"}), "a function": (lambda o: o, "pendulum", {"episodes": 1}),
    }.items():  # fmt: skip
        yield called(
            f"library, evaluate: {name}",
            lambda log, run, place, g=given, t=task, o=options: (
                mcetm.evaluate(run.policies[0] if isinstance(g, int) else g, t, **o) and None
            ),
        )
    for name, act in {
        "no log": lambda log, run, place: mcetm.estimate(run.policies[0]), "nothing": lambda log, run, place: mcetm.estimate([], log), "a word": lambda log, run, place: mcetm.estimate("nowhere"), "None": lambda log, run, place: mcetm.estimate(None, log), "log a word": lambda log, run, place: mcetm.estimate(run.policies[0], "x"),
        "another log": lambda log, run, place: mcetm.estimate(run.policies[0], mcetm.load_dataset(str(place.material / "usual.csv")), settings=_quick()), "seed -1": lambda log, run, place: mcetm.estimate(run.policies[0], log, seed=-1, settings=_quick()), "settings a dict": lambda log, run, place: mcetm.estimate(run.policies[0], log, settings={}), "world a word": lambda log, run, place: mcetm.estimate(run.policies[0], log, world="x", settings=_quick()),
        "folder is a file": lambda log, run, place: mcetm.estimate(run.policies[0], log, folder=place.material / "log.npz", settings=_quick()), "one row": lambda log, run, place: mcetm.estimate(run.policies[0], mcetm.Transitions.from_arrays(np.zeros((1, 3)), np.zeros((1, 1)), np.zeros(1)), settings=_quick()),
        "no rewards": lambda log, run, place: mcetm.estimate(run.policies[0], mcetm.Transitions.from_arrays(np.zeros((30, 3)), np.zeros((30, 1))), settings=_quick()),
    }.items():  # fmt: skip
        yield called(f"library, estimate: {name}", act)


def _quick() -> Any:
    """Estimators that take little time."""
    return settings_of(ESTIMATES)


def models() -> Iterator[Case]:
    """Models and worlds, asked of pairs that cannot be; and `fit`."""
    pairs: dict[str, tuple[Any, Any]] = {
        "other widths": (np.zeros((5, 4)), np.zeros((5, 1))), "action of another width": (np.zeros((5, 3)), np.zeros((5, 2))), "other rows": (np.zeros((5, 3)), np.zeros((4, 1))), "words": ("x", "y"), "None": (None, None), "numbers": (1.0, 2.0), "swapped": (np.zeros((5, 1)), np.zeros((5, 3))), "NaN": (np.full((5, 3), NAN), np.zeros((5, 1))),
        "inf": (np.full((5, 3), INF), np.zeros((5, 1))), "large": (np.full((5, 3), 1e30), np.zeros((5, 1))), "integers": (np.zeros((5, 3), int), np.zeros((5, 1), int)), "complex": (np.zeros((5, 3), complex), np.zeros((5, 1))), "no rows": (np.zeros((0, 3)), np.zeros((0, 1))), "objects": (np.array([[object()] * 3]), np.zeros((1, 1))), "ragged": ([[1, 2], [3]], [[1], [1]]),
    }  # fmt: skip
    for name, (obs, action) in pairs.items():
        expect = "either" if name in ("integers", "no rows", "large", "NaN", "inf") else "refused"
        yield called(
            f"library, models: samples({name})",
            lambda log, run, place, o=obs, a=action: _finite_or_said(
                run.world.model.samples(o, a, 2, key=_key()).next_obs, o
            ),
            expect,
        )
        yield called(
            f"library, models: predict({name})",
            lambda log, run, place, o=obs, a=action: run.world.model.predict(o, a, key=_key()) is None,
            expect,
        )
        yield called(
            f"library, models: pair_score({name})",
            lambda log, run, place, o=obs, a=action: run.world.pair_score(o, a) is None,
            expect,
        )
    for count in (0, -1, 1.5, "2", None, 10**12):
        yield called(
            f"library, models: samples, count {count!r}",
            lambda log, run, place, c=count: (
                run.world.model.samples(np.zeros((5, 3)), np.zeros((5, 1)), c, key=_key()) is None
            ),
        )
    for key in (0, "x", np.zeros(3)):
        yield called(
            f"library, models: samples, key {key!r}",
            lambda log, run, place, k=key: (
                run.world.model.samples(np.zeros((5, 3)), np.zeros((5, 1)), 2, key=k) is None
            ),
        )
    bc = mcetm.BC(**SMALL)
    for name, act in {
        "settings None": lambda log, run, place: mcetm.fit(None, log), "settings a class": lambda log, run, place: mcetm.fit(mcetm.BC, log), "settings a word": lambda log, run, place: mcetm.fit("bc", log), "data None": lambda log, run, place: mcetm.fit(bc, None), "data a word": lambda log, run, place: mcetm.fit(bc, "pendulum-mixed"),
        "data an array": lambda log, run, place: mcetm.fit(bc, np.zeros((5, 3))), "seed -1": lambda log, run, place: mcetm.fit(bc, log, seed=-1), "seed a word": lambda log, run, place: mcetm.fit(bc, log, seed="x"), "seeds 0": lambda log, run, place: mcetm.fit(bc, log, seeds=0), "seeds -1": lambda log, run, place: mcetm.fit(bc, log, seeds=-1), "seeds 1.5": lambda log, run, place: mcetm.fit(bc, log, seeds=1.5),
        "seeds huge": lambda log, run, place: mcetm.fit(bc, log, seeds=10**9), "folder a file": lambda log, run, place: mcetm.fit(bc, log, folder=place.material / "log.npz"), "folder a number": lambda log, run, place: mcetm.fit(bc, log, folder=3), "folder below a file": lambda log, run, place: mcetm.fit(bc, log, folder=place.material / "log.npz" / "x"),
        "folder of another run": lambda log, run, place: mcetm.fit(bc, log, folder=place.copy("mopo")), "world missing": lambda log, run, place: mcetm.fit(mcetm.MOPO(), log), "world a model": lambda log, run, place: mcetm.fit(mcetm.MOPO(), log, world=run.world.model), "world for BC": lambda log, run, place: mcetm.fit(bc, log, world=3), "holdout a number": lambda log, run, place: mcetm.fit(mcetm.GaussianEnsemble(steps=5), log, holdout=0.1),
        "holdout of another width": lambda log, run, place: mcetm.fit(mcetm.GaussianEnsemble(steps=5, width=4, members=2, elites=2), log, holdout=mcetm.load_dataset(str(place.material / "usual.csv"))), "world of another log": lambda log, run, place: mcetm.fit(mcetm.MOPO(), mcetm.load_dataset(str(place.material / "usual.csv")), world=run.world),
        "callbacks a number": lambda log, run, place: mcetm.fit(bc, log, callbacks=3), "callbacks of words": lambda log, run, place: mcetm.fit(bc, log, callbacks=["x"]), "network a word": lambda log, run, place: mcetm.fit(bc, log, network="x"), "network returns None": lambda log, run, place: mcetm.fit(bc, log, network=lambda *a, **k: None), "log without actions": lambda log, run, place: mcetm.fit(bc, mcetm.Transitions.from_arrays(np.zeros((30, 3)))),
        "log without rewards": lambda log, run, place: mcetm.fit(mcetm.IQL(**SMALL), mcetm.Transitions.from_arrays(np.zeros((30, 3)), np.zeros((30, 1)))), "a model with no next states": lambda log, run, place: mcetm.fit(mcetm.GaussianEnsemble(steps=5), mcetm.Transitions.from_arrays(np.zeros((1, 3)), np.zeros((1, 1)), np.zeros(1), terminated=[True])),
        "World.of a word": lambda log, run, place: mcetm.World.of("x", log, holdout=log), "World.of a class": lambda log, run, place: mcetm.World.of(mcetm.GaussianEnsemble(), log, holdout=log), "World.of no data": lambda log, run, place: mcetm.World.of(run.world.model, None, holdout=log), "World.of another width": lambda log, run, place: mcetm.World.of(run.world.model, mcetm.load_dataset(str(place.material / "usual.csv")), holdout=log),
        "World.of config": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, config={"pairs": 0}), "World.of task": lambda log, run, place: mcetm.World.of(run.world.model, log, holdout=log, task="nobody"), "collect -1": lambda log, run, place: mcetm.collect("pendulum", -1), "collect 0": lambda log, run, place: mcetm.collect("pendulum", 0), "collect 1.5": lambda log, run, place: mcetm.collect("pendulum", 1.5),
        "collect None": lambda log, run, place: mcetm.collect(None, 10), "collect policy": lambda log, run, place: mcetm.collect("pendulum", 10, 3), "collect processes": lambda log, run, place: mcetm.collect("pendulum", 10, processes=0), "get_task None": lambda log, run, place: mcetm.get_task(None), "get_task ''": lambda log, run, place: mcetm.get_task(""), "preset": lambda log, run, place: mcetm.preset("nobody"),
        "make_card None": lambda log, run, place: mcetm.make_card(None), "Statistics of None": lambda log, run, place: mcetm.Statistics.of(None), "read_policy": lambda log, run, place: mcetm.read_policy(place.material / "log.npz"), "Columns": lambda log, run, place: mcetm.Columns(obs=3), "export_model": lambda log, run, place: mcetm.export_model(run.world.model, "x.npz"),
        "export_model samples": lambda log, run, place: mcetm.export_model(run.world.model, "x.stablehlo", samples=0), "export_energy": lambda log, run, place: mcetm.export_energy(run.world.model, "x.stablehlo"), "export_model None": lambda log, run, place: mcetm.export_model(None, "x.stablehlo"),
    }.items():  # fmt: skip
        yield called(f"library, fit and worlds: {name}", act)


def _finite_or_said(found: Any, obs: Any) -> Any:
    """What is not a number in a batch of pairs may be none in what follows; nothing else may."""
    found = np.asarray(found)
    return None if not np.isfinite(np.asarray(obs, np.float32)).all() else found


def _key() -> Any:
    import jax

    return jax.random.key(0)


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (arrays, policies, models):
        yield from make()

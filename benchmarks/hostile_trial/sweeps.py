"""Plans of sweeps that cannot be, what is set beside them, and folders of sweeps with one thing wrong."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostile_trial.runs import DAMAGE
from hostile_trial.trial import Case, Place, command

GROUP = "sweeps"
_HEAD = """title = "T"
preset = "quick"
logs = ["{m}/log.npz"]
task = "pendulum"
seeds = 1
steps = 5
episodes = 1
"""
_SYSTEM = """[[systems]]
algorithm = "bc"
set = ["algorithm.width=4", "algorithm.depth=1", "evaluation.episodes=1"]
"""
PLAN = _HEAD + _SYSTEM
_GRID = 'grid = { "algorithm.width" = [4, 8] }\n'
_OVER = 'over = { "algorithm.width" = { low = 4, high = 8 } }\n'


def _with(old: str, new: str, plan: str = PLAN) -> str:
    assert old in plan, old
    return plan.replace(old, new, 1)


def _plans() -> dict[str, str | bytes]:
    """Each plan has one thing wrong."""
    head = {
        "title a number": ('title = "T"', "title = 3"), "title of escapes": ('"T"', '"\\u001b[2J"'), "title of lines": ('"T"', '"""a\nb"""'), "title endless": ('"T"', '"' + "x" * 5000 + '"'), "preset a path": ('"quick"', '"../quick"'), "preset empty": ('"quick"', '""'), "preset of another kind": ('"quick"', "{a=1}"),
        "logs a word": ('["{m}/log.npz"]', '"log.npz"'), "logs empty": ('["{m}/log.npz"]', "[]"), "logs of nothing": ('"{m}/log.npz"', '""'), "the same log twice": ('["{m}/log.npz"]', '["{m}/log.npz", "{m}/log.npz"]'), "two logs of one name": ('["{m}/log.npz"]', '["{m}/log.npz", "{m}/log.hdf5"]'),
        "a log that is a folder": ("{m}/log.npz", "{m}"), "a log that is a run": ("{m}/log.npz", "{m}/bc"), "a log that is a device": ("{m}/log.npz", "/dev/zero"), "a log that is a pipe": ("{m}/log.npz", "pipe"), "a log of one row": ("{m}/log.npz", "{m}/one.npz"), "a log with a NUL": ("{m}/log.npz", "a\\u0000b.npz"),
        "a log of other names": ("{m}/log.npz", "{m}/plant.csv"), "a log nobody has": ("{m}/log.npz", "nobody-medium"), "a log to be downloaded": ("{m}/log.npz", "hopper-medium-expert-v2"), "a log by address": ("{m}/log.npz", "https://example.org/x.npz"),
        "task unknown": ('"pendulum"', '"nobody"'), "task of a module": ('"pendulum"', '"os:system"'), "task of another width": ('"pendulum"', '"hopper"'), "task empty": ('"pendulum"', '""'), "task a list": ('"pendulum"', "[1]"), "task an id without spaces": ('"pendulum"', '"CartPole-v1"'),
        "seeds 0": ("seeds = 1", "seeds = 0"), "seeds -1": ("seeds = 1", "seeds = -1"), "seeds half": ("seeds = 1", "seeds = 1.5"), "seeds huge": ("seeds = 1", "seeds = 9999"), "seeds endless": ("seeds = 1", "seeds = " + "9" * 4000), "seeds true": ("seeds = 1", "seeds = true"), "seeds and worlds": ("seeds = 1", "seeds = 1\nworlds = [[0]]"),
        "worlds empty": ("seeds = 1", "worlds = []"), "worlds of nothing": ("seeds = 1", "worlds = [[]]"), "worlds apart": ("seeds = 1", "worlds = [[0, 2]]"), "worlds twice": ("seeds = 1", "worlds = [[0, 1], [1, 2]]"), "worlds far": ("seeds = 1", "worlds = [[4294967296]]"), "worlds farther": ("seeds = 1", "worlds = [[1099511627776]]"),
        "worlds of words": ("seeds = 1", 'worlds = [["a"]]'), "steps 0": ("steps = 5", "steps = 0"), "steps -5": ("steps = 5", "steps = -5"), "steps endless": ("steps = 5", "steps = 99999999999999999"), "steps word": ("steps = 5", 'steps = "5"'), "episodes 0": ("episodes = 1", "episodes = 0"), "episodes endless": ("episodes = 1", "episodes = 10000001"),
        "share 0": ("steps = 5", "steps = 5\nshare = 0"), "share 2": ("steps = 5", "steps = 5\nshare = 2"), "share NaN": ("steps = 5", "steps = 5\nshare = nan"), "share tiny": ("steps = 5", "steps = 5\nshare = 1e-12"), "share nearly all": ("steps = 5", "steps = 5\nshare = 0.9999999"), "objective unknown": ("steps = 5", 'steps = 5\nobjective = "luck"'),
        "estimates of nothing": ("steps = 5", 'steps = 5\nobjective = "estimates"\nestimate = ["nobody=1"]'), "estimates without a value": ("steps = 5", 'steps = 5\nestimate = ["fqe.steps"]'), "estimates unused": ("steps = 5", 'steps = 5\nestimate = ["fqe.steps=-1"]'), "set a word": ("steps = 5", 'steps = 5\nset = "algorithm.width=4"'),
        "set without a value": ("steps = 5", 'steps = 5\nset = ["algorithm.width"]'), "set a log": ("steps = 5", 'steps = 5\nset = ["dataset=x"]'), "set a task": ("steps = 5", 'steps = 5\nset = ["task=x"]'), "set an algorithm": ("steps = 5", 'steps = 5\nset = ["algorithm.name=cql"]'), "set a whole part": ("steps = 5", 'steps = 5\nset = ["algorithm={}"]'),
        "set nothing": ("steps = 5", 'steps = 5\nset = ["=4"]'), "set NaN": ("steps = 5", 'steps = 5\nset = ["algorithm.learning_rate=NaN"]'), "set deep": ("steps = 5", 'steps = 5\nset = ["algorithm.width=' + "[" * 3000 + '"]'), "set endless": ("steps = 5", 'steps = 5\nset = ["algorithm.width=' + "9" * 4000 + '"]'),
        "set a model of BC": ("steps = 5", 'steps = 5\nset = ["model.width=4"]'), "an unknown field": ("steps = 5", "steps = 5\nodd = 1"), "a date": ("steps = 5", "steps = 2024-01-01"), "infinity": ("steps = 5", "steps = inf"),
    }  # fmt: skip
    system = {
        "no systems": (_SYSTEM, ""), "systems a table": ("[[systems]]", "[systems]"), "algorithm unknown": ('"bc"', '"nobody"'), "algorithm of a module": ('"bc"', '"os:system"'), "algorithm empty": ('"bc"', '""'), "algorithm a number": ('"bc"', "3"), "no algorithm": ('algorithm = "bc"\n', ""), "label a path": ('"bc"', '"bc"\nlabel = "../x"'),
        "label of dots": ('"bc"', '"bc"\nlabel = ".."'), "label empty": ('"bc"', '"bc"\nlabel = ""'), "label of escapes": ('"bc"', '"bc"\nlabel = "\\u001b[31m"'), "label of markup": ('"bc"', '"bc"\nlabel = "[/red]<b>|=1+1"'), "label endless": ('"bc"', '"bc"\nlabel = "' + "x" * 101 + '"'), "label of 100 signs": ('"bc"', '"bc"\nlabel = "' + "ü" * 100 + '"'),
        "model unknown": ('"bc"', '"mopo"\nmodel = "nobody"'), "model of BC": ('"bc"', '"bc"\nmodel = "gaussian"'), "model of a module": ('"bc"', '"mopo"\nmodel = "os:path"'), "preset unknown": ('"bc"', '"bc"\npreset = "nobody"'), "steps 0 of a system": ('"bc"', '"bc"\nsteps = 0'), "an unknown field of a system": ('"bc"', '"bc"\nodd = 1'),
        "set of a system, unknown": ("algorithm.width=4", "algorithm.nobody=4"), "set of a system, 0": ("algorithm.width=4", "algorithm.width=0"), "set of a system, huge": ("algorithm.width=4", "algorithm.width=99999999"), "set of a system, twice": ("algorithm.width=4", 'algorithm.width=4", "algorithm.width=5'), "set of a system, a module": ("algorithm.width=4", "model.name=os:path"),
        "grid empty": ('"bc"', '"bc"\ngrid = {}\nover = {}'), "grid of nothing": ('"bc"', '"bc"\ngrid = { "algorithm.width" = [] }'), "grid unknown": ('"bc"', '"bc"\ngrid = { "algorithm.nobody" = [1] }'), "grid of 0": ('"bc"', '"bc"\ngrid = { "algorithm.width" = [4, 0] }'), "grid of words": ('"bc"', '"bc"\ngrid = { "algorithm.width" = ["a"] }'),
        "grid of lists": ('"bc"', '"bc"\ngrid = { "algorithm.width" = [[4]] }'), "grid NaN": ('"bc"', '"bc"\ngrid = { "algorithm.learning_rate" = [nan] }'), "grid twice": ('"bc"', '"bc"\ngrid = { "algorithm.width" = [4, 4] }'), "grid of logs": ('"bc"', '"bc"\ngrid = { dataset = ["x"] }'), "grid of seeds": ('"bc"', '"bc"\ngrid = { seeds = [1, 2] }'),
        "grid of algorithms": ('"bc"', '"bc"\ngrid = { "algorithm.name" = ["bc", "cql"] }'), "grid endless": ('"bc"', '"bc"\ngrid = { ' + ", ".join(f'"algorithm.{name}" = [{", ".join(map(str, range(1, 101)))}]' for name in ("width", "depth", "steps", "batch_size")) + " }"), "grid of a part": ('"bc"', '"bc"\ngrid = { algorithm = [1] }'),
        "grid and over": ('"bc"', '"bc"\n' + _GRID + _OVER), "over backwards": ('"bc"', '"bc"\n' + _OVER.replace("low = 4", "low = 40")), "over one value": ('"bc"', '"bc"\n' + _OVER.replace("high = 8", "high = 4")), "over half": ('"bc"', '"bc"\n' + _OVER.replace(", high = 8", "")), "over NaN": ('"bc"', '"bc"\n' + _OVER.replace("high = 8", "high = nan")),
        "over infinity": ('"bc"', '"bc"\n' + _OVER.replace("high = 8", "high = inf")), "over log of 0": ('"bc"', '"bc"\n' + _OVER.replace("low = 4", "log = true, low = 0")), "over below 1": ('"bc"', '"bc"\n' + _OVER.replace("low = 4", "low = -9")), "over endless": ('"bc"', '"bc"\n' + _OVER.replace("high = 8", "high = " + "9" * 400)), "over nothing": ('"bc"', '"bc"\n' + _OVER.replace("low = 4, high = 8", "")),
        "over choices and ends": ('"bc"', '"bc"\n' + _OVER.replace("low = 4", "choices = [4], low = 4")), "over no choices": ('"bc"', '"bc"\n' + _OVER.replace("low = 4, high = 8", "choices = []")), "over choices of words": ('"bc"', '"bc"\n' + _OVER.replace("low = 4, high = 8", 'choices = ["a"]')), "over halves": ('"bc"', '"bc"\n' + _OVER.replace("4, high = 8", "4.5, high = 8.5")),
        "over a word": ('"bc"', '"bc"\n' + _OVER.replace('"algorithm.width"', '"algorithm.name"')), "the same system twice": (_SYSTEM, _SYSTEM * 2), "two systems of one label": (_SYSTEM, _SYSTEM + _SYSTEM.replace("width=4", "width=8")),
    }  # fmt: skip
    tail = {
        "search unknown": '[search]\nmethod = "luck"', "trials 0": "[search]\ntrials = 0", "trials endless": "[search]\ntrials = 999999999", "batch 0": "[search]\nbatch = 0", "search seed -1": "[search]\nseed = -1", "search a word": 'search = "x"', "search odd": "[search]\nodd = 1", "search seed endless": "[search]\nseed = 1099511627776",
        "executor unknown": '[executor]\nname = "cloud"', "executor a word": 'executor = "local"', "executor a list": "[[executor]]", "parallel 0": "[executor]\nparallel = 0", "parallel -1": "[executor]\nparallel = -1", "parallel endless": "[executor]\nparallel = 10001", "parallel true": "[executor]\nparallel = true", "memory 0": "[executor]\nmemory = 0.0",
        "memory 2": "[executor]\nmemory = 2.0", "memory NaN": "[executor]\nmemory = nan", "gpus here": "[executor]\ngpus = 1", "executor odd": "[executor]\nodd = 1", "slurm minutes 0": '[executor]\nname = "slurm"\nminutes = 0', "slurm cpus 0": '[executor]\nname = "slurm"\ncpus = 0', "ray cpus -1": '[executor]\nname = "ray"\ncpus = -1.0',
        "ray environment": '[executor]\nname = "ray"\nenvironment = {A = 1}', "ray resources": '[executor]\nname = "ray"\nresources = {A = nan}', "slurm setup": '[executor]\nname = "slurm"\nsetup = "rm"', "slurm partition": '[executor]\nname = "slurm"\npartition = "\\u001b"',
    }  # fmt: skip
    found: dict[str, str | bytes] = {name: _with(old, new) for name, (old, new) in (head | system).items()}
    found |= {name: f"{PLAN}{text}\n" for name, text in tail.items()}
    top = {name: text for name, text in tail.items() if not text.startswith("[")}
    found |= {name: f"{text}\n{PLAN}" for name, text in top.items()}
    found |= {
        "empty": "", "a mark": b"\xef\xbb\xbf" + PLAN.encode(), "UTF-16": PLAN.encode("utf-16"), "latin-1": PLAN.replace('"T"', '"Für"').encode("latin-1"), "NUL": PLAN.encode() + b"\0", "JSON": json.dumps({"logs": ["x"], "systems": []}), "a table of another program": b"PK\x03\x04" + bytes(300), "twice": PLAN + PLAN,
        "deep": "a = " + "[" * 5000, "deep names": "[" + ".".join("a" * 5000) + "]\n", "deep dots": ".".join("a" * 3000) + " = 1\n", "a long comment": "#" + "x" * 5_000_000, "surrogate": PLAN.replace('"T"', '"\\ud800"'), "tabs": PLAN.replace(" = ", "\t=\t"), "carriage returns": PLAN.replace("\n", "\r"),
    }  # fmt: skip
    return found


_MAY = {
    "a mark", "tabs", "the same log twice", "two logs of one name", "grid twice", "grid empty", "grid endless", "label of markup", "label of 100 signs",
    "steps endless", "seeds huge", "the same system twice", "estimates unused", "over below 1", "over endless", "share nearly all", "share tiny",
    "search seed endless", "trials endless", "worlds far", "set of a system, twice", "episodes endless", "task an id without spaces", "set a model of BC",
}  # fmt: skip


def plans() -> Iterator[Case]:
    """Plans in files."""
    for name, text in _plans().items():

        def prepare(place: Place, text: str | bytes = text) -> None:
            content = text.encode() if isinstance(text, str) else text
            place.write("plan.toml", content.replace(b"{m}", str(place.material).encode()))
            os.mkfifo(place.folder / "pipe")

        yield command(
            GROUP,
            f"plan: {name}",
            *("sweep", "plan.toml", "--out", "out", "--minutes", "0"),
            prepare=prepare,
            words=(
                "plan",
                "log",
                "task",
                "setting",
                "system",
                "algorithm",
                "dataset",
                "one.npz",
                "pipe",
                "environment",
            ),
            expect="either" if name in _MAY else "refused",
        )


def _good(place: Place) -> None:
    place.write("plan.toml", PLAN.replace("{m}", str(place.material)))


def options() -> Iterator[Case]:
    """What is typed beside a good plan, and what is there instead of one."""
    sets = (
        "seeds", "seeds=", "=3", "seeds=x", "seeds=0", "seeds=nan", "nobody=1", "systems=[]", "systems=3", "systems.0.algorithm=cql", "systems.9.algorithm=bc", "systems.x=1",
        "logs=[]", "logs=x", "executor=local", "executor.name=cloud", "executor.parallel=0", "executor.parallel=1.5", "search.trials=0", "search=[]", "title=\x1b[2J", "logs=[\"nothing.npz\"]", "logs.0=nothing.npz",
        "logs.7=x", "worlds=[[0]]", "a.b.c=1", "seeds.x=1", "title.x=1", "." * 500 + "=1", "seeds=" + "[" * 3000, "executor.memory=-1", "systems.-1.algorithm=nobody", "steps=1e3", "share=1e400",
    )  # fmt: skip
    for text in sets:
        yield command(
            GROUP,
            f"--set {text[:40]!r}",
            *("sweep", "plan.toml", "--out", "out", "--minutes", "0", "--set", text),
            prepare=_good,
            words=("plan", "log", "setting", "seeds", "systems", "executor", "=", "nothing.npz", "title"),
            expect="either" if text in ("title=\x1b[2J", "steps=1e3") else "refused",
        )
    lines = [
        "sweep", "sweep plan.toml out", "sweep status", "sweep status nowhere", "sweep status {m}/bc", "sweep status plan.toml", "sweep status . --out x", "sweep status {m}/sweep --parallel 2", "sweep status {m}/sweep --executor local", "sweep status {m}/sweep --minutes 1",
        "sweep {m}/sweep", "sweep {m}/bc/config.json", "sweep nothing.toml", "sweep . --out out", "sweep /dev/zero --out out", "sweep pipe --out out", "sweep loop --out out", "sweep plan.toml --out plan.toml", "sweep plan.toml --out /dev/null", "sweep plan.toml --out pipe",
        "sweep plan.toml --out loop", "sweep plan.toml --out {m}/log.npz", "sweep plan.toml --out out --parallel 0", "sweep plan.toml --out out --parallel -1", "sweep plan.toml --out out --parallel x", "sweep plan.toml --out out --parallel 99999999999", "sweep plan.toml --out out --executor cloud",
        "sweep plan.toml --out out --executor slurm --parallel 0", "sweep plan.toml --out out --minutes nan", "sweep plan.toml --out out --minutes -1", "sweep plan.toml --out out --minutes inf --parallel 0", "sweep plan.toml --out out --minutes x", "sweep plan.toml --out out --csv /dev/full",
        "sweep plan.toml --out out --csv x --latex x", "sweep plan.toml --out out --markdown /proc/nowhere/x", "sweep plan.toml --out /proc/nowhere/x --minutes 0", "sweep plan.toml --set", "sweep plan.toml --retry x y", "sweep status {m}/sweep --csv {m}", "sweep status {m}/sweep --csv a --markdown a",
        "sweep status {m}/sweep --csv pipe", "sweep status {m}/sweep --latex loop", "sweep status {m}/mopo", "sweep status /dev/null", "sweep status \x1b[2J", "sweep Status {m}/sweep",
    ]  # fmt: skip

    def prepare(place: Place) -> None:
        _good(place)
        os.mkfifo(place.folder / "pipe")
        (place.folder / "loop").symlink_to("loop")

    for line in lines:
        yield command(GROUP, line, *line.split(" "), prepare=prepare)
    yield command(GROUP, "a name that is not UTF-8", "sweep", "\udcff.toml")
    yield command(GROUP, "a name with a NUL", "sweep", "a\0.toml")
    yield command(GROUP, "an endless name", "sweep", "x" * 5000)
    yield command(GROUP, "a folder with a NUL", "sweep", "status", "a\0")


_CELL = "the cell"
_FILES = ("sweep.json", "jobs.json", _CELL, "failures", "table.md", "results.json")


def _where(folder: Path, file: str) -> Path:
    return next((folder / "cells").glob("*.json")) if file == _CELL else folder / file


def folders() -> Iterator[Case]:
    """Folders of sweeps, for whoever asks how far they are and for whoever goes on."""
    asked: dict[str, tuple[str, ...]] = {
        "status": ("sweep", "status", "sweep"),
        "status --json": ("sweep", "status", "sweep", "--json"),
        "again": ("sweep", "plan.toml", "--out", "sweep", "--minutes", "0"),
    }
    number = 0
    for file in ("sweep.json", "jobs.json", _CELL):
        for name, damage in DAMAGE.items():
            number += 1
            reader = list(asked)[number % len(asked)]

            def damaged(place: Place, damage: Any = damage, file: str = file) -> None:
                _good(place)
                damage(_where(place.copy("sweep"), file))

            yield command(
                GROUP,
                f"{reader}: {file}: {name}",
                *asked[reader],
                prepare=damaged,
                words=("sweep",),
                expect="either",
            )
    values: tuple[Any, ...] = (
        None, True, -1, 10**40, 1e308, "", "x" * 100_000, "\x1b[31m<b>[/red]", [], {}, "../../x", "os:system", [[1, 2]], "=1+1",
    )  # fmt: skip

    def field(file: str, path: tuple[Any, ...], value: Any) -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            _good(place)
            where = _where(place.copy("sweep"), file)
            content = inner = json.loads(where.read_text())
            for part in path[:-1]:
                inner = inner[part]
            inner[path[-1]] = value
            where.write_text(json.dumps(content))

        return prepare

    paths: dict[str, list[tuple[Any, ...]]] = {
        "sweep.json": [("title",), ("chosen_by",), ("plan",), ("plan", "systems"), ("odd",)],
        "jobs.json": [(0, name) for name in ("name", "label", "system", "values", "log", "key", "seeds", "updates", "config", "episodes", "estimate", "data", "world", "odd")]
        + [(0, "config", "dataset"), (0, "config", "task"), (0, "config", "algorithm"), (0, "config", "columns"), (0,)],
        _CELL: [(name,) for name in ("format", "key", "log", "label", "task", "scale", "data", "data_return", "rows", "notes", "seeds", "world", "updates", "returns", "lengths", "curve_steps", "curve", "diagnosis", "estimates", "seconds", "settings", "environment", "odd")]
        + [("returns", 0), ("seeds", 0)],
    }  # fmt: skip
    for file, places in paths.items():
        for path in places:
            for turn in range(2):
                number += 1
                value = values[(number * 5 + turn * 7) % len(values)]
                reader = list(asked)[number % len(asked)]
                yield command(
                    GROUP,
                    f"{reader}: {file}: {'.'.join(map(str, path))} = {value!r:.30}",
                    *asked[reader],
                    prepare=field(file, path, value),
                    words=("sweep", str(path[-1])),
                    expect="either",
                )
    shapes: dict[str, Callable[[Path], object]] = {
        "no cells": lambda f: shutil.rmtree(f / "cells"), "cells a file": lambda f: (shutil.rmtree(f / "cells"), (f / "cells").write_text("x")), "no runs": lambda f: shutil.rmtree(f / "runs"), "a pipe for the table": lambda f: ((f / "table.md").unlink(), os.mkfifo(f / "table.md")),
        "a folder for the table": lambda f: ((f / "table.md").unlink(), (f / "table.md").mkdir()), "a device for the table": lambda f: ((f / "table.csv").unlink(), (f / "table.csv").symlink_to("/dev/full")), "failures that are not UTF-8": lambda f: _failure(f, b"\xff\xfe\x00bad"), "failures of escapes": lambda f: _failure(f, b"\x1b[2J\x1b]0;x\x07[/red]"),
        "failures endless": lambda f: _failure(f, b"x" * 10_000_000), "a pipe for a failure": lambda f: _failure(f, None), "failures a file": lambda f: (f / "failures").write_text("x"), "a loop for the list": lambda f: ((f / "jobs.json").unlink(), (f / "jobs.json").symlink_to("jobs.json")),
        "a pipe for metrics": lambda f: _metrics(f, os.mkfifo), "metrics endless": lambda f: _metrics(f, lambda p: (p.touch(), os.truncate(p, 2**34))), "metrics a device": lambda f: _metrics(f, lambda p: p.symlink_to("/dev/zero")), "metrics of lists": lambda f: _metrics(f, lambda p: p.write_text('{"step": [1]}\n' * 3)),
        "metrics deep": lambda f: _metrics(f, lambda p: p.write_text("[" * 60000 + "\n")), "metrics step infinity": lambda f: _metrics(f, lambda p: p.write_text('{"step": Infinity}\n')), "a pipe for a claim": lambda f: ((f / "running").mkdir(exist_ok=True), os.mkfifo(f / "running" / _name(f))), "running a file": lambda f: (shutil.rmtree(f / "running", ignore_errors=True), (f / "running").write_text("x")),
    }  # fmt: skip
    for name, change in shapes.items():
        for reader in ("status", "again"):

            def prepare(place: Place, change: Callable[[Path], object] = change) -> None:
                _good(place)
                change(place.copy("sweep"))

            yield command(GROUP, f"{reader}: {name}", *asked[reader], prepare=prepare, expect="either")


def _name(folder: Path) -> str:
    return json.loads((folder / "jobs.json").read_text())[0]["name"]


def _failure(folder: Path, content: bytes | None) -> None:
    """A cell that has no result any more, and a sentence why."""
    (folder / "cells" / f"{_name(folder)}.json").unlink()
    place = folder / "failures" / f"{_name(folder)}.txt"
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place) if content is None else place.write_bytes(content)


def _metrics(folder: Path, make: Callable[[Path], object]) -> None:
    """A cell that has no result any more, and metrics of another kind."""
    (folder / "cells" / f"{_name(folder)}.json").unlink()
    place = folder / "runs" / _name(folder) / "metrics.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    make(place)


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (plans, options, folders):
        yield from make()

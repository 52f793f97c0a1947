"""Run folders with one thing wrong each, for every command that reads one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mcetm
from hostile_trial.material import ESTIMATES
from hostile_trial.trial import Case, Place, command

_ASK = ("--set", *ESTIMATES)
READERS: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", "RUN", "--episodes", "1"),
    "compare": ("compare", "RUN", "--out", "drawn"),
    "resume": ("train", "--resume", "RUN"),
    "estimate": ("estimate", "RUN", "--out", "drawn", *_ASK),
    "select": ("select", "RUN", "--out", "chosen", *_ASK),
    "tournament": ("select", "RUN", "--tournament", "--out", "chosen", *_ASK),
    "trust": ("trust", "RUN", "{m}/log.npz"),
    "export": ("export", "RUN", "--to", "npz"),
    "dynamics": ("export", "RUN", "--part", "dynamics", "--to", "stablehlo"),
    "models": (
        "train",
        "{m}/log.npz",
        "--algo",
        "mopo",
        "--models",
        "RUN",
        "--out",
        "new",
        "--set",
        "algorithm.learner.steps=1",
    ),
}
_READ: dict[str, tuple[str, ...]] = {
    "config.json": ("compare", "resume", "estimate", "dynamics", "models", "tournament"),
    "results.json": ("compare", "resume"),
    "seconds.json": ("resume", "models", "dynamics"),
    "environment.json": ("resume", "compare", "evaluate"),
    "card.json": ("resume", "load_run"),
    "metrics.jsonl": ("resume", "compare"),
    "policy/seed-0/policy.json": ("evaluate", "estimate", "trust", "export", "compare", "tournament"),
    "policy/seed-1/policy.safetensors": ("evaluate", "estimate", "trust"),
    "policy/seed-0/policy.safetensors": ("export", "evaluate", "estimate"),
    "estimates/seed-0-fqe.json": ("select", "compare"),
    "report.html": ("resume",),
}
"""Which commands have to do with a file."""


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def _instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": _bytes(lambda _: b""), "half": _bytes(lambda b: b[: len(b) // 2]), "null": _bytes(lambda _: b"null"), "a list": _bytes(lambda _: b"[]"), "an object": _bytes(lambda _: b"{}"),
    "a number": _bytes(lambda _: b"3"), "a word": _bytes(lambda _: b'"x"'), "deep": _bytes(lambda _: b'{"a":' * 4000 + b"1" + b"}" * 4000), "not UTF-8": _bytes(lambda b: b.replace(b'"', b'"\xff', 1)),
    "a mark": _bytes(lambda b: b"\xef\xbb\xbf" + b), "zeros": _bytes(lambda b: bytes(len(b))), "twice": _bytes(lambda b: b + b), "a pipe": _instead(os.mkfifo), "a folder": _instead(Path.mkdir),
    "a loop": _instead(lambda p: p.symlink_to(p.name)), "a device": _instead(lambda p: p.symlink_to("/dev/zero")), "gone": Path.unlink, "huge": lambda p: os.truncate(p, 2**32),
    "a NaN": _bytes(lambda b: b.replace(b": 1", b": NaN1"[:6], 1)), "a huge number": _bytes(lambda b: b.replace(b": ", b": " + b"9" * 5000, 1)), "surrogates": _bytes(lambda b: b.replace(b'": "', b'": "\\ud800', 1)),
}  # fmt: skip
_HARMLESS = {("metrics.jsonl", "empty"), ("metrics.jsonl", "gone"), ("report.html", "")}


def _prepare(run: str, file: str, damage: Callable[[Path], object]) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        damage(place.copy(run, "run") / file)

    return prepare


def read(reader: str, run: str = "run") -> tuple[str, ...]:
    """The command of a reader, for a run of this name."""
    return tuple(run if part == "RUN" else part for part in READERS[reader])


def _load(place: Place) -> Any:
    run = mcetm.load_run(place.folder / "run")
    return str(run), run.card.warnings, run.policies[0](np.zeros(3, np.float32)), run.task, run.result


def whole_files() -> Iterator[Case]:
    """Every file of a run with every damage, for one of its readers in turn."""
    for run in ("bc", "mopo"):
        for f, (file, readers) in enumerate(_READ.items()):
            if run == "mopo" and file.startswith("estimates"):
                continue
            for d, (name, damage) in enumerate(DAMAGE.items()):
                reader = readers[(d + f) % len(readers)]
                if (run == "mopo" and d % 3) or (run == "bc" and reader in ("dynamics", "models")):
                    reader = readers[0]
                    if run == "mopo":
                        continue
                group, label = f"run folders: {reader}", f"{run}/{file}: {name}"
                prepare = _prepare(run, file, damage)
                if reader == "load_run":
                    yield Case(group, label, _load, "either", (Path(file).name,), prepare)
                else:
                    yield command(
                        group,
                        label,
                        *read(reader),
                        expect="either",
                        words=(Path(file).name, "RUN", "run"),
                        prepare=prepare,
                    )


def _leaves(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content[:2])
        if isinstance(content, list)
        else ()
    )
    for name, value in inner:
        yield (*place, name), value
        yield from _leaves(value, (*place, name))


_OTHERS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1e308,
    10**40,
    "",
    "x" * 100_000,
    "\x1b[31m<b>[/red]",
    [],
    {},
    [[[]]],
    "../../x",
    "os:system",
    "=1+1",
    [1] * 9,
    {"a": {}},
)


def fields(material: Path) -> Iterator[Case]:
    """One value of a file with another one; the checksum of a policy is right, as its writer would make it."""
    from mcetm.agents.policy import _checksum

    number = 0
    for run in ("bc", "mopo"):
        for file, readers in _READ.items():
            path = material / run / file
            if path.suffix != ".json" or not path.is_file():
                continue
            content = json.loads(path.read_text())
            places = [place for place, _ in _leaves(content)]
            for place in places[:: max(1, len(places) // (24 if run == "bc" else 10))]:
                number += 1
                value = _OTHERS[number % len(_OTHERS)]
                usable = [
                    r
                    for r in readers
                    if r not in ("load_run", "tournament")
                    and not (run == "bc" and r in ("dynamics", "models"))
                ]
                reader = usable[number % len(usable)]

                def damage(path: Path, place: tuple[Any, ...] = place, value: Any = value) -> None:
                    content = json.loads(path.read_text())
                    inner = content
                    for part in place[:-1]:
                        inner = inner[part]
                    inner[place[-1]] = value
                    if "checksum" in content and path.name == "policy.json" and isinstance(content, dict):
                        content["checksum"] = _checksum(
                            content, path.with_suffix(".safetensors").read_bytes()
                        )
                    path.write_text(json.dumps(content))

                yield command(
                    f"run folders: {reader}",
                    f"{run}/{file}: {'.'.join(map(str, place))} = {value!r:.30}",
                    *read(reader),
                    expect="either",
                    words=(Path(file).name, "setting", str(place[-1])),
                    prepare=_prepare(run, file, damage),
                )


def checkpoints(material: Path) -> Iterator[Case]:
    """Checkpoints of policies and of each part of the models."""
    files = sorted(path.relative_to(material / "mopo") for path in (material / "mopo").rglob("*.safetensors"))
    files = [file for file in files if "policy" not in file.parts]
    for f, file in enumerate(files):
        for d, name in enumerate(
            ("empty", "half", "zeros", "a pipe", "a folder", "gone", "a device", "twice")
        ):
            if (d + f) % 4 == 0:
                reader = ("resume", "dynamics", "models")[(d + f) // 4 % 3]
                yield command(
                    f"run folders: {reader}",
                    f"{file}: {name}",
                    *read(reader),
                    expect="either",
                    words=("checkpoint", "run", file.name),
                    prepare=_prepare("mopo", str(file), DAMAGE[name]),
                )


def shapes() -> Iterator[Case]:
    """Folders that are no runs, and runs in which whole parts are missing or others'."""

    def without(*names: str, run: str = "bc") -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            copy = place.copy(run, "run")
            for name in names:
                shutil.rmtree(copy / name) if (copy / name).is_dir() else (copy / name).unlink()

        return prepare

    def swapped(place: Place) -> None:
        copy = place.copy("bc", "run")
        shutil.rmtree(copy / "policy")
        shutil.copytree(place.material / "mopo" / "policy", copy / "policy")

    def renamed(to: str) -> Callable[[Place], object]:
        return lambda place: (place.copy("bc", "run") / "policy" / "seed-0").rename(
            place.folder / "run" / "policy" / to
        )

    made: dict[str, Callable[[Place], object]] = {
        "nothing there": lambda p: None, "an empty folder": lambda p: (p.folder / "run").mkdir(), "a file": lambda p: p.write("run", "x"), "a pipe": lambda p: os.mkfifo(p.folder / "run"),
        "a loop": lambda p: (p.folder / "run").symlink_to("run"), "no policies": without("policy"), "no config": without("config.json"), "no results": without("results.json"),
        "no seconds": without("seconds.json"), "no checkpoints": without("checkpoints", run="mopo"), "no models": without("models", run="mopo"), "one seed": without("policy/seed-1"),
        "policies of another": swapped, "seed-x": renamed("seed-x"), "seed-00": renamed("seed-00"), "seed--1": renamed("seed--1"), "seed of 5,000 digits": renamed("seed-" + "9" * 200),
        "a folder for a log": lambda p: shutil.copytree(p.material / "select", p.folder / "run"),
    }  # fmt: skip
    for name, prepare in made.items():
        for reader in READERS:
            if reader in ("tournament", "estimate", "select") and ("seed" in name or len(name) % 2):
                continue  # what is accepted there is estimated, which takes long
            yield command(
                f"run folders: {reader}",
                f"shape: {name}",
                *read(reader),
                expect="either",
                words=("run",),
                prepare=prepare,
            )


def cases(material: Path) -> Iterator[Case]:
    """All of them."""
    yield from whole_files()
    yield from fields(material)
    yield from checkpoints(material)
    yield from shapes()

"""A tiny finished run, copies of it, and the damage that is done to them."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load, save

import mcetm
from mcetm.agents.policy import _checksum
from mcetm.cli import main
from mcetm.training import Saving

Damage = Callable[[Path], None]
GONE = object()
"""In place of a value: the field is not there at all."""

POLICY = "policy/seed-0/policy.json"
WEIGHTS = "policy/seed-0/policy.safetensors"


def make_run(folder: Path) -> Path:
    """Behaviour cloning of a short log, two seeds, two checkpoints."""
    log, run = folder / "log.npz", folder / "run"
    mcetm.collect("pendulum", 400, "uniform", processes=1).save(log)
    settings = ["steps=1200", "width=8", "depth=1", "batch_size=8"]
    options = f"--dataset {log} --algo bc --seeds 2 --out {run} --set evaluation.episodes=1"
    pause = Saving.pause
    jax.config.update("jax_disable_most_optimizations", True)  # as the tests do that resume it
    try:
        Saving.pause = lambda self, cost: 0.0  # a checkpoint after every chunk
        assert main(["train", *options.split(), *(f"algorithm.{setting}" for setting in settings)]) == 0
    finally:
        Saving.pause = pause
    return run


def text(file: str, content: str | bytes) -> Damage:
    """Another content."""

    def damage(run: Path) -> None:
        (run / file).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def put(file: str, path: str, value: Any, *, sign: bool = True) -> Damage:
    """Another value in a JSON file; a policy is signed again, as its writer would, unless told otherwise."""

    def damage(run: Path) -> None:
        content = json.loads((run / file).read_text())
        *places, name = path.split("/")
        inner = content
        for place in places:
            inner = inner[int(place) if isinstance(inner, list) else place]
        if value is GONE:
            del inner[name]
        else:
            inner[int(name) if isinstance(inner, list) else name] = value
        (run / file).write_text(json.dumps(content))
        if sign and file == POLICY and path != "checksum":
            sign_policy(run / file)

    return damage


def sign_policy(path: Path) -> None:
    """Make the checksum of a policy that of its content."""
    content = json.loads(path.read_text())
    if "checksum" in content:
        content["checksum"] = _checksum(content, path.with_suffix(".safetensors").read_bytes())
        path.write_text(json.dumps(content))


def flip(file: str, place: int) -> Damage:
    """One bit is another."""

    def damage(run: Path) -> None:
        content = bytearray((run / file).read_bytes())
        content[place] ^= 1
        (run / file).write_bytes(content)

    return damage


def cut(file: str, bytes_left: int) -> Damage:
    """The end is missing."""
    return lambda run: os.truncate(run / file, bytes_left)


def gone(file: str) -> Damage:
    """The file is missing."""
    return lambda run: (run / file).unlink()


def fifo(file: str) -> Damage:
    """A pipe that nobody writes into, in the place of a file."""

    def damage(run: Path) -> None:
        (run / file).unlink()
        os.mkfifo(run / file)

    return damage


def folder(file: str) -> Damage:
    """A folder in the place of a file."""

    def damage(run: Path) -> None:
        (run / file).unlink()
        (run / file).mkdir()

    return damage


def huge(file: str) -> Damage:
    """More bytes than such a file can have; they take no room on the disk."""
    return lambda run: os.truncate(run / file, 2**31)


def arrays(change: Callable[[dict[str, Any]], Any]) -> Damage:
    """Other weights, signed as their writer would."""

    def damage(run: Path) -> None:
        found = {name: np.array(array) for name, array in load((run / WEIGHTS).read_bytes()).items()}
        changed = change(found) or found
        (run / WEIGHTS).write_bytes(save({name: np.ascontiguousarray(a) for name, a in changed.items()}))
        sign_policy(run / POLICY)

    return damage


def copy(run: Path, folder: Path) -> Path:
    """A run to be damaged."""
    return Path(shutil.copytree(run, folder / "copy"))

"""Stores of Minari that cannot be: their descriptions, and the episodes in them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hostile_trial.trial import Case, Place, command

_BOX = {"type": "Box", "dtype": "float32", "shape": [3], "low": [-9.0] * 3, "high": [9.0] * 3}
_GOOD: dict[str, Any] = {
    "total_episodes": 3, "total_steps": 30, "data_format": "hdf5", "dataset_id": "made/here-v0", "minari_version": "0.5.3",
    "observation_space": json.dumps(_BOX), "action_space": json.dumps({**_BOX, "shape": [1], "low": [-1.0], "high": [1.0]}),
}  # fmt: skip


def _write(folder: Path, described: Any) -> Path:
    data = folder / "store" / "data"
    data.mkdir(parents=True)
    (data / "metadata.json").write_text(described if isinstance(described, str) else json.dumps(described))
    rng = np.random.default_rng(0)
    with h5py.File(data / "main_data.hdf5", "w") as file:
        for i in range(3):
            group = file.create_group(f"episode_{i}")
            group.attrs["id"], group.attrs["total_steps"] = i, 10
            group["observations"], group["actions"] = (
                rng.normal(size=(11, 3)).astype("f4"),
                rng.uniform(-1, 1, (10, 1)).astype("f4"),
            )
            group["rewards"], group["terminations"], group["truncations"] = (
                rng.normal(size=10),
                np.arange(10) == 9,
                np.zeros(10, bool),
            )
    return data


_SPACES: dict[str, Any] = {
    "null": None, "a number": 3, "no JSON": "{", "an unknown type": {"type": "Nobody"}, "no type": {}, "a class": {"type": "os.system"}, "Discrete": {"type": "Discrete", "n": 3, "start": 0, "dtype": "int64"}, "no low": {k: v for k, v in _BOX.items() if k != "low"}, "shape negative": {**_BOX, "shape": [-3]},
    "shape huge": {**_BOX, "shape": [10**12]}, "shape of words": {**_BOX, "shape": ["a"]}, "low NaN": {**_BOX, "low": [float("nan")] * 3}, "low short": {**_BOX, "low": [0.0]}, "crossed": {**_BOX, "low": [9.0] * 3, "high": [-9.0] * 3}, "dtype": {**_BOX, "dtype": "object"}, "dtype none": {**_BOX, "dtype": "nobody"},
    "deep": "[" * 5000, "a dictionary of itself": {"type": "Dict", "subspaces": {"a": {"type": "Dict", "subspaces": {}}}}, "an empty tuple": {"type": "Tuple", "subspaces": []}, "subspaces a word": {"type": "Dict", "subspaces": "x"}, "text": {"type": "Text", "max_length": 3}, "another width": {**_BOX, "shape": [4], "low": [-9.0] * 4, "high": [9.0] * 4},
}  # fmt: skip
_FIELDS: dict[str, dict[str, Any]] = {
    "total_steps wrong": {"total_steps": 31}, "total_steps word": {"total_steps": "x"}, "total_steps negative": {"total_steps": -1}, "total_episodes 0": {"total_episodes": 0}, "total_episodes huge": {"total_episodes": 10**15}, "total_episodes NaN": {"total_episodes": float("nan")}, "format arrow": {"data_format": "arrow"}, "format unknown": {"data_format": "pickle"},
    "format a list": {"data_format": ["hdf5"]}, "id a number": {"dataset_id": 3}, "id of escapes": {"dataset_id": "\x1b[31m"}, "env_spec of code": {"env_spec": json.dumps({"id": "X-v0", "entry_point": "os:system", "kwargs": {"command": "touch ran"}})}, "env_spec no JSON": {"env_spec": "{"}, "env_spec of options": {"env_spec": json.dumps({"id": "Pendulum-v1", "entry_point": "x", "kwargs": {"xml_file": "/etc/passwd"}})},
    "episode metadata": {"episode_metadata": "../../x"}, "odd": {"odd": [1]},
}  # fmt: skip


def _edits() -> dict[str, Callable[[Any], object]]:
    def put(name: str, value: Any) -> Callable[[Any], object]:
        def edit(file: Any) -> None:
            if name in file:
                del file[name]
            if value is not None:
                file[name] = value

        return edit

    return {
        "no episode 1": put("episode_1", None), "one more episode": lambda f: f.create_group("episode_3"), "an episode named x": lambda f: f.create_group("episode_x"), "an episode is an array": put("episode_1", np.zeros(3)), "no actions": put("episode_1/actions", None), "observations of 10": put("episode_1/observations", np.zeros((10, 3))),
        "observations of 12": put("episode_1/observations", np.zeros((12, 3))), "observations a group": lambda f: (f.__delitem__("episode_1/observations"), f.create_group("episode_1/observations")), "observations a scalar": put("episode_1/observations", 3.0), "rewards NaN": put("episode_1/rewards", np.full(10, np.nan)), "rewards of words": put("episode_1/rewards", np.array([b"x"] * 10)),
        "rewards short": put("episode_1/rewards", np.zeros(9)), "flags 2": put("episode_1/terminations", np.full(10, 2)), "flags in the middle": put("episode_1/terminations", np.arange(10) == 3), "actions beyond": put("episode_1/actions", np.full((10, 1), 7.0)), "actions wide": put("episode_1/actions", np.zeros((10, 2))), "no rows": put("episode_1/rewards", np.zeros(0)),
        "a soft link round": put("episode_1/rewards", h5py.SoftLink("/episode_1/rewards")), "an external link": put("episode_1/rewards", h5py.ExternalLink("/etc/passwd", "x")), "huge": lambda f: (f.__delitem__("episode_1/rewards"), f.create_dataset("episode_1/rewards", (10**11,), "f4", chunks=(10**6,))), "images": put("episode_1/observations", np.zeros((11, 8, 8, 3), np.uint8)),
    }  # fmt: skip


def cases() -> Iterator[Case]:
    """All of them."""
    line = ("data", "inspect", "store")
    for where in ("observation_space", "action_space"):
        for name, space in list(_SPACES.items())[where == "action_space" :: 1 + (where == "action_space")]:
            text = space if isinstance(space, str) else json.dumps(space)
            yield command(
                "Minari stores",
                f"{where}: {name}",
                *line,
                prepare=lambda p, w=where, t=text: _write(p.folder, {**_GOOD, w: t}),
                words=("store",),
                expect="either" if name == "dtype none" else "refused",
            )
    may = {
        "total_steps wrong",
        "env_spec of code",
        "odd",
        "episode metadata",
        "env_spec of options",
        "id of escapes",
        "total_steps negative",
        "total_steps word",
        "id a number",
        "env_spec no JSON",
    }
    for name, change in _FIELDS.items():
        yield command(
            "Minari stores",
            name,
            *line,
            prepare=lambda p, c=change: _write(p.folder, {**_GOOD, **c}),
            words=("store",),
            expect="either" if name in may else "refused",
        )
        yield command(
            "Minari stores",
            f"{name}, trained",
            "train",
            "store",
            "--algo",
            "bc",
            "--out",
            "run",
            "--seeds",
            1,
            "--set",
            "algorithm.steps=5",
            "algorithm.width=4",
            words=("store",),
            prepare=lambda p, c=change: _write(p.folder, {**_GOOD, **c}),
            expect="either",
        )
    for name, edit in _edits().items():

        def prepare(place: Place, edit: Callable[[Any], object] = edit) -> None:
            with h5py.File(_write(place.folder, _GOOD) / "main_data.hdf5", "a") as file:
                edit(file)

        yield command(
            "Minari stores",
            name,
            *line,
            prepare=prepare,
            words=("store",),
            expect="either"
            if name in ("an episode named x", "flags in the middle", "one more episode")
            else "refused",
        )
    for name, text in {
        "empty": "",
        "no JSON": "{",
        "a list": "[]",
        "deep": "[" * 5000,
        "twice": '{"total_steps": 1, "total_steps": 2}',
        "null": "null",
    }.items():
        yield command(
            "Minari stores",
            f"metadata.json: {name}",
            *line,
            prepare=lambda p, t=text: _write(p.folder, t),
            words=("store",),
        )
    for name in ("metadata.json", "main_data.hdf5"):
        for what, make in {
            "gone": lambda p: None,
            "a pipe": os.mkfifo,
            "a folder": Path.mkdir,
            "a loop": lambda p: p.symlink_to(p.name),
            "elsewhere": lambda p: p.symlink_to("/etc/passwd"),
            "a device": lambda p: p.symlink_to("/dev/zero"),
        }.items():

            def spoilt(place: Place, name: str = name, make: Callable[[Path], object] = make) -> None:
                data = _write(place.folder, _GOOD)
                (data / name).unlink()
                make(data / name)

            yield command("Minari stores", f"{name}: {what}", *line, prepare=spoilt, words=("store",))

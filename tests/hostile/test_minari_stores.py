"""Minari stores that somebody got wrong, or made to run code: one sentence and exit code 2."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
from gymnasium import spaces
from minari.serialization import serialize_space
from pyarrow import ipc, parquet

from mcetm import UserError
from mcetm.data import read_minari
from tests.data.test_minari import buffer, create
from tests.hostile.outcomes import assert_refused, contents, run

LENGTHS = (12, 1, 30)
OBS, ACTION = spaces.Box(-10.0, 10.0, (3,), np.float64), spaces.Box(-1.0, 1.0, (2,), np.float32)
DESCRIBED = {
    "total_episodes": len(LENGTHS),
    "total_steps": sum(LENGTHS),
    "data_format": "hdf5",
    "observation_space": serialize_space(OBS),
    "action_space": serialize_space(ACTION),
    "dataset_id": "made/store-v0",
    "minari_version": "0.5.3",
    "env_spec": json.dumps({"id": "Far-v0", "entry_point": "os:system", "kwargs": {"command": "touch ran"}}),
}
NOTHING = object()
DAMAGED = "is damaged"


def store(folder: Path, **changes: Any) -> Path:
    """A good store, but for what its description says; NOTHING leaves a field out."""
    data = folder / "store" / "data"
    data.mkdir(parents=True)
    described = {name: value for name, value in {**DESCRIBED, **changes}.items() if value is not NOTHING}
    (data / "metadata.json").write_text(json.dumps(described))
    rng = np.random.default_rng(0)
    with h5py.File(data / "main_data.hdf5", "w") as file:
        for i, length in enumerate(LENGTHS):
            group = file.create_group(f"episode_{i}")
            group["observations"] = rng.normal(size=(length + 1, 3))
            group["actions"] = rng.uniform(-1, 1, (length, 2)).astype(np.float32)
            group["rewards"] = rng.normal(size=length)
            group["terminations"] = np.arange(length) == length - 1
            group["truncations"] = np.zeros(length, bool)
    return folder / "store"


def described(text: str | bytes) -> Callable[[Path], Path]:
    """A store whose description is this text."""

    def build(folder: Path) -> Path:
        path = store(folder)
        (path / "data" / "metadata.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return build


def edited(edit: Callable[[Any], object]) -> Callable[[Path], Path]:
    """A store whose data somebody has been at with h5py."""

    def build(folder: Path) -> Path:
        path = store(folder)
        with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
            edit(file)
        return path

    return build


def put(name: str, data: Any) -> Callable[[Path], Path]:
    def edit(file: Any) -> None:
        del file[name]
        if data is not None:
            file[name] = data

    return edited(edit)


def piped(name: str) -> Callable[[Path], Path]:
    """A store where one of the files is a pipe."""

    def build(folder: Path) -> Path:
        path = store(folder)
        (path / "data" / name).unlink()
        os.mkfifo(path / "data" / name)
        return path

    return build


def truncated(folder: Path) -> Path:
    path = store(folder)
    data = path / "data" / "main_data.hdf5"
    data.write_bytes(data.read_bytes()[:400])
    return path


def external(file: Any) -> None:
    del file["episode_1/rewards"]
    file.create_dataset("episode_1/rewards", (1,), "f4", external=[("/etc/passwd", 0, 4)])


def box(**changes: Any) -> str:
    return json.dumps({**json.loads(str(serialize_space(ACTION))), **changes})


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "spaces only the environment knows": (
        lambda f: store(f, observation_space=NOTHING, action_space=NOTHING),
        "would run code that the dataset names",
    ),
    "actions only the environment knows": (
        lambda f: store(f, action_space=None),
        "does not describe its actions",
    ),
    "not JSON": (described("nonsense"), DAMAGED),
    "not UTF-8": (described(b'{"a": "\xff"}'), DAMAGED),
    "empty": (described(""), DAMAGED),
    "a list": (described("[]"), DAMAGED),
    "null": (described("null"), DAMAGED),
    "deep lists": (described("[" * 100_000), DAMAGED),
    "no fields": (described("{}"), DAMAGED),
    "another format": (
        lambda f: store(f, data_format="pickle"),
        "a format of data that is not known here, 'pickle'",
    ),
    "escapes for a format": (lambda f: store(f, data_format="\x1b[2J"), r"not known here, '\x1b[2J'"),
    "a list for a format": (
        lambda f: store(f, data_format=["hdf5"]),
        "a format of data that is not known here",
    ),
    "arrow without files": (lambda f: store(f, data_format="arrow"), "metadata.json says 3, but there are 0"),
    "more episodes than there are": (lambda f: store(f, total_episodes=10**15), "but there are 3"),
    "fewer episodes than there are": (
        lambda f: store(f, total_episodes=2),
        "metadata.json says 2, but there are 3",
    ),
    "a negative number of episodes": (
        lambda f: store(f, total_episodes=-1),
        "'total_episodes' is not a number",
    ),
    "episodes in words": (lambda f: store(f, total_episodes="3"), "'total_episodes' is not a number"),
    "half an episode": (lambda f: store(f, total_episodes=2.5), "'total_episodes' is not a number"),
    "an environment that is no JSON": (lambda f: store(f, env_spec="{"), DAMAGED),
    "an environment that is a list": (lambda f: store(f, env_spec="[]"), DAMAGED),
    "an environment that is a number": (lambda f: store(f, env_spec=5), DAMAGED),
    "a space that is no JSON": (
        lambda f: store(f, observation_space="Box(3)"),
        "'observation_space' cannot be read",
    ),
    "a space that is a number": (
        lambda f: store(f, observation_space=5),
        "'observation_space' cannot be read",
    ),
    "a space that is a list": (
        lambda f: store(f, observation_space="[]"),
        "'observation_space' cannot be read",
    ),
    "a space of nothing": (
        lambda f: store(f, action_space='{"type": "Dict", "subspaces": {}}'),
        "'action_space' cannot be read",
    ),
    "actions of another width": (
        put("episode_1/actions", np.zeros((1, 3))),
        "store cannot be used: episode_1, actions: has the shape (1, 3)",
    ),
    "a space without a type": (
        lambda f: store(f, observation_space="{}"),
        "'observation_space' cannot be read",
    ),
    "a deep space": (
        lambda f: store(f, observation_space='{"type": "Tuple", "subspaces": [' * 20_000),
        "'observation_space' cannot be read",
    ),
    "a box larger than the memory": (
        lambda f: store(f, action_space=box(shape=[10**12])),
        "'action_space' cannot be read",
    ),
    "a box of negative size": (
        lambda f: store(f, action_space=box(shape=[-2])),
        "'action_space' cannot be read",
    ),
    "a box without a shape": (
        lambda f: store(f, action_space=box(shape=None)),
        "'action_space' cannot be read",
    ),
    "bounds of text": (lambda f: store(f, action_space=box(low=["a", "b"])), "'action_space' cannot be read"),
    "bounds of NaN": (
        lambda f: store(f, action_space=box(high=[float("nan")] * 2)),
        "'action_space' cannot be read",
    ),
    "bounds of another width": (
        lambda f: store(f, action_space=box(low=[0.0])),
        "'action_space' cannot be read",
    ),
    "bounds upside down": (
        lambda f: store(f, action_space=box(low=[2.0] * 2)),
        "a lower bound above its upper one",
    ),
    "a discrete space": (
        lambda f: store(f, action_space='{"type": "Discrete", "n": 3}'),
        "a Discrete space is not supported",
    ),
    "a space named by escapes": (
        lambda f: store(f, action_space='{"type": "\\u001b[2J"}'),
        r"a \x1b[2J space is not supported",
    ),
    "images": (
        lambda f: store(f, observation_space=serialize_space(spaces.Box(0, 255, (4, 4, 3), np.uint8))),
        "images are not supported",
    ),
    "a dictionary of other keys": (
        lambda f: store(f, observation_space=serialize_space(spaces.Dict({"x": OBS}))),
        "episode_0/observations/x: is missing",
    ),
    "a pipe for the description": (piped("metadata.json"), "is a folder, but not that of a Minari dataset"),
    "a pipe for the data": (piped("main_data.hdf5"), "it is a device or a pipe, not a file"),
    "data cut short": (truncated, "is truncated or corrupt"),
    "an external link": (
        edited(lambda h: h.__setitem__("x", h5py.ExternalLink("a", "/b"))),
        "a link into another file",
    ),
    "external storage": (edited(external), "keeps its numbers in another file"),
    "no rewards": (put("episode_1/rewards", None), "episode_1/rewards: is missing"),
    "no terminations": (put("episode_2/terminations", None), "episode_2/terminations: is missing"),
    "one observation too few": (
        put("episode_0/observations", np.zeros((12, 3))),
        "has the shape (12, 3), but (13, 3) is needed",
    ),
    "observations too wide": (
        put("episode_0/observations", np.zeros((13, 4))),
        "has the shape (13, 4), but (13, 3) is needed",
    ),
    "observations that could be folded": (
        put("episode_0/observations", np.zeros((39,))),
        "has the shape (39,)",
    ),
    "a group for actions": (put("episode_0/actions", None), "episode_0/actions: is missing"),
    "text for rewards": (put("episode_0/rewards", np.full(12, b"one")), "is not numeric"),
    "NaN": (put("episode_0/rewards", np.full(12, np.nan)), "reward, row 0: is NaN"),
    "actions out of bounds": (put("episode_0/actions", np.full((12, 2), 3.0)), "outside its bounds"),
    "too many terminations": (put("episode_0/terminations", np.zeros(13, bool)), "'terminated' has 13 rows"),
    "one termination for all": (put("episode_0/terminations", np.float32(7)), "'terminated' must be 0 or 1"),
    "an array never written": (
        edited(
            lambda h: (
                h.pop("episode_0/rewards"),
                h.create_dataset("episode_0/rewards", (10**9,), "f4", chunks=(10**6,)),
            )
        ),
        "made to fill the memory",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_store_is_one_sentence_and_runs_nothing(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    build, words = BAD[case]
    source = build(tmp_path)
    before = contents(tmp_path)
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), words)
    assert contents(tmp_path) == before


GOOD: dict[str, Callable[[Path], Path]] = {
    "as it should be": store,
    "an environment from far away": lambda f: store(f, env_spec=NOTHING),
    "infos that nobody needs": edited(
        lambda h: h.create_dataset("episode_0/infos/x", (10**12,), "f4", chunks=(10**6,))
    ),
    "a name with escapes": lambda f: store(f, dataset_id="\x1b[2J[/red]"),
    "a name that is no text": lambda f: store(f, dataset_id={"a": 1}),
}


@pytest.mark.parametrize("case", GOOD)
def test_a_good_store_is_read_and_runs_nothing(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = GOOD[case](tmp_path)
    found = run("data", "inspect", source, "--json")
    assert found.code == 0, found.err
    card = json.loads(found.out)
    assert (card["transitions"], card["episodes"], card["terminations"]) == (sum(LENGTHS), 3, 3)
    shown = run("data", "inspect", source)
    assert all(line.isprintable() for line in shown.out.splitlines())
    assert not (tmp_path / "ran").exists()


# Minari's other stores: a folder for each episode, with a file that pyarrow reads.

COLUMNS: dict[str, Any] = {
    "observations": pa.FixedSizeListArray.from_arrays(np.linspace(0.0, 1.0, 39), 3),
    "actions": pa.FixedSizeListArray.from_arrays(np.zeros(26, np.float32), 2),
    "rewards": pa.array(np.zeros(13)),
    "terminations": pa.array(np.arange(13) == 11),
}


def columns(form: str, file: Path, *twice: str, **changes: Any) -> None:
    """Write an episode's file; a column that is None is left out."""
    found = {name: column for name, column in {**COLUMNS, **changes}.items() if column is not None}
    names = [*found, *twice]
    table = pa.Table.from_arrays([found[name] for name in names], names)
    if form == "parquet":
        parquet.write_table(table, file)
        return
    with ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def other_store(folder: Path, form: str, write: Callable[[str, Path], object] = columns) -> Path:
    """A store with one good episode and one that `write` fills."""
    path = store(folder, data_format=form, total_episodes=2)
    for number, fill in enumerate((columns, write)):
        (path / "data" / str(number)).mkdir()
        fill(form, path / "data" / str(number) / f"part-0.{form}")
    return path


def cut(form: str, file: Path) -> None:
    columns(form, file)
    os.truncate(file, file.stat().st_size // 2)


def empty_cells(name: str) -> Any:
    return pa.array([None, *COLUMNS[name].to_pylist()[1:]], COLUMNS[name].type)


CLAIMS = {name: pa.nulls(3 * 10**6, pa.float64()) for name in COLUMNS}
BAD_FILES: dict[str, tuple[Callable[[str, Path], object], str]] = {
    "cut short": (cut, "is truncated or corrupt"),
    "nonsense": (lambda form, file: file.write_bytes(b"nonsense" * 99), "is truncated or corrupt"),
    "empty": (lambda form, file: file.write_bytes(b""), "is truncated or corrupt"),
    "a pipe": (lambda form, file: os.mkfifo(file), "it is a device or a pipe"),
    "a folder": (lambda form, file: file.mkdir(), "it is a folder"),
    "nothing": (lambda form, file: None, "episode 1: is missing"),
    "no rewards": (lambda form, file: columns(form, file, rewards=None), "rewards: is missing"),
    "rewards twice": (lambda form, file: columns(form, file, "rewards"), "rewards: is there twice"),
    "no rows": (
        lambda form, file: columns(form, file, **{name: c[:0] for name, c in COLUMNS.items()}),
        "no rows",
    ),
    "text": (
        lambda form, file: columns(form, file, rewards=pa.array(["\x1b"] * 13)),
        "episode 1, rewards: is not numeric (string)",
    ),
    "times": (
        lambda form, file: columns(form, file, rewards=pa.array(range(13), pa.timestamp("s"))),
        "is not numeric (timestamp[",
    ),
    "empty cells": (
        lambda form, file: columns(form, file, rewards=empty_cells("rewards")),
        "has empty cells",
    ),
    "empty rows": (
        lambda form, file: columns(form, file, observations=empty_cells("observations")),
        "episode 1, observations: has empty cells",
    ),
    "rows of several lengths": (
        lambda form, file: columns(form, file, observations=pa.array([[0.0]] * 12 + [[0.0, 1.0]])),
        "has rows of different lengths",
    ),
    "rows of several lengths that add up": (
        lambda form, file: columns(
            form, file, observations=pa.array([[0.0] * width for width in (2, 4) * 6] + [[0.0] * 3])
        ),
        "episode 1, observations: has rows of different lengths",
    ),
    "rows too wide": (
        lambda form, file: columns(
            form, file, observations=pa.FixedSizeListArray.from_arrays(np.zeros(52), 4)
        ),
        "has the shape (13, 4), but (13, 3) is needed",
    ),
    "numbers for rows": (
        lambda form, file: columns(form, file, observations=COLUMNS["rewards"]),
        "has the shape (13, 1), but (13, 3) is needed",
    ),
    "rows for numbers": (
        lambda form, file: columns(form, file, rewards=COLUMNS["observations"]),
        "has the shape",
    ),
    "NaN": (lambda form, file: columns(form, file, rewards=pa.array([np.nan] * 13)), "is NaN"),
}


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_of_an_episode_is_one_sentence(case: str, form: str, tmp_path: Path) -> None:
    fill, words = BAD_FILES[case]
    source = other_store(tmp_path, form, fill)
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), words)


def test_a_small_file_that_claims_much_is_not_read(tmp_path: Path) -> None:
    source = other_store(tmp_path, "parquet", lambda form, file: columns(form, file, **CLAIMS))
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), "made to fill the memory")


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_damaged_files_of_episodes_never_end_the_process(form: str, tmp_path: Path) -> None:
    source, chance = other_store(tmp_path, form), random.Random(0)
    file = source / "data" / "1" / f"part-0.{form}"
    good = file.read_bytes()
    for _ in range(40):
        content = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(content) - 8)
            content[at : at + chance.choice([1, 8])] = chance.choice([b"\xff" * 8, b"\x7f", b"\0", bytes(8)])
        file.write_bytes(content)
        with contextlib.suppress(UserError):
            assert len(read_minari(str(source))) <= 24


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_minari_s_other_stores_are_read(form: str, tmp_path: Path) -> None:
    create(f"made/{form}-v0", [buffer(15, terminates=True, seed=0)], data_format=form)
    create("made/hdf5-v0", [buffer(15, terminates=True, seed=0)])
    found = [json.loads(run("data", "inspect", f"made/{kind}-v0", "--json").out) for kind in (form, "hdf5")]
    assert found[0]["checksum"] == found[1]["checksum"]


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_nested_spaces_of_other_stores_are_laid_side_by_side(form: str, tmp_path: Path) -> None:
    space = spaces.Dict({"b": OBS, "a": spaces.Tuple([spaces.Box(-9.0, 9.0, (2, 2), np.float64), OBS])})
    b, first, second = (np.random.default_rng(i).normal(size=(13, n)) for i, n in enumerate((3, 4, 3)))
    episode = buffer(12, terminates=True, seed=0, obs={"b": b, "a": (first.reshape(13, 2, 2), second)})
    create("made/nested-v0", [episode], data_format=form, observation_space=space)
    log = read_minari("made/nested-v0")
    np.testing.assert_allclose(log.obs, np.concatenate([first, second, b], axis=1)[:-1], rtol=1e-6)

"""Data files that somebody got wrong, or made to do harm: one sentence and exit code 2, and nothing written.

A case builds a file and has words of its sentence. Files that are odd and good are read, with the right card.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from mcetm import formats
from tests.conftest import random_fields
from tests.hostile import files
from tests.hostile.files import (
    ROWS,
    csv,
    d4rl,
    edited,
    npz,
    ours,
    parquet,
    raw,
    replaced,
    with_field,
    with_header,
)
from tests.hostile.outcomes import assert_refused, contents, run

Build = Callable[[Path], Path]
Cases = dict[str, tuple[Build, str]]

NAN, INF = float("nan"), float("inf")
ELSEWHERE = "a link into another file"
FOREIGN = "keeps its numbers in another file"
DAMAGED = "is truncated or corrupt"
BOMB = "made to fill the memory"


def first(name: str, value: float) -> Any:
    """A good field with one number replaced, in double precision."""
    field = random_fields()[name].astype(np.float64)
    field.flat[0] = value
    return field


def cut(path: Path, length: int | float) -> Path:
    """The beginning of a file: so many bytes, or such a share of them."""
    content = path.read_bytes()
    path.write_bytes(content[: length if isinstance(length, int) else int(length * len(content))])
    return path


def virtual(file: Any, source: str) -> None:
    layout = h5py.VirtualLayout((ROWS,), "f4")
    layout[:] = h5py.VirtualSource(source, "rewards", (ROWS,))
    file.move("rewards", "elsewhere")
    file.create_virtual_dataset("rewards", layout)


def external(file: Any, source: str) -> None:
    del file["rewards"]
    file.create_dataset("rewards", (ROWS,), "f4", external=[(source, 0, 4 * ROWS)])


def fifo(folder: Path, name: str = "pipe") -> str:
    os.mkfifo(folder / name)
    return str(folder / name)


def link(file: Any, name: str, target: Any) -> None:
    if name in file:
        del file[name]
    file[name] = target


def other_file(folder: Path) -> str:
    (folder / "other").mkdir()
    return str(d4rl(folder / "other"))


VLEN = h5py.vlen_dtype(np.float32)

HDF5: Cases = {
    "external link": (
        lambda f: edited(f, lambda h: link(h, "rewards", h5py.ExternalLink(other_file(f), "/rewards"))),
        "'rewards' is a link into another file",
    ),
    "external link, unused": (
        lambda f: edited(f, lambda h: link(h, "x", h5py.ExternalLink("a", "/b"))),
        ELSEWHERE,
    ),
    "external link in infos": (
        lambda f: edited(f, lambda h: link(h, "infos/qpos", h5py.ExternalLink("a", "/b"))),
        "'infos/qpos' is a link into another file",
    ),
    "external link to a pipe": (
        lambda f: edited(f, lambda h: link(h, "rewards", h5py.ExternalLink(fifo(f), "/x"))),
        ELSEWHERE,
    ),
    "external link to itself": (
        lambda f: edited(f, lambda h: link(h, "rewards", h5py.ExternalLink("log.hdf5", "/rewards"))),
        ELSEWHERE,
    ),
    "external link behind a soft one": (
        lambda f: edited(
            f,
            lambda h: (
                link(h, "out", h5py.ExternalLink("a", "/")),
                link(h, "rewards", h5py.SoftLink("/out/b")),
            ),
        ),
        ELSEWHERE,
    ),
    "external link named by escapes": (
        lambda f: edited(f, lambda h: link(h, "\x1b[2Jx", h5py.ExternalLink("a", "/b"))),
        r"\x1b[2Jx",
    ),
    "external storage": (lambda f: edited(f, lambda h: external(h, "/etc/passwd")), FOREIGN),
    "external storage, missing": (lambda f: edited(f, lambda h: external(h, str(f / "none"))), FOREIGN),
    "external storage in a pipe": (lambda f: edited(f, lambda h: external(h, fifo(f))), FOREIGN),
    "virtual dataset": (lambda f: edited(f, lambda h: virtual(h, other_file(f))), FOREIGN),
    "virtual dataset, missing": (lambda f: edited(f, lambda h: virtual(h, "none.hdf5")), FOREIGN),
    "virtual dataset of a pipe": (lambda f: edited(f, lambda h: virtual(h, fifo(f))), FOREIGN),
    "virtual dataset of itself": (lambda f: edited(f, lambda h: virtual(h, ".")), FOREIGN),
    "soft link to nothing": (
        lambda f: edited(f, lambda h: link(h, "rewards", h5py.SoftLink("/none"))),
        DAMAGED,
    ),
    "soft link in a circle": (
        lambda f: edited(
            f, lambda h: (link(h, "rewards", h5py.SoftLink("/x")), link(h, "x", h5py.SoftLink("/rewards")))
        ),
        DAMAGED,
    ),
    "a group for an array": (
        lambda f: edited(f, lambda h: (h.pop("rewards"), h.create_group("rewards"))),
        "'rewards' is not an array",
    ),
    "a type for an array": (
        lambda f: edited(f, lambda h: link(h, "actions", np.dtype("f4"))),
        "is not an array",
    ),
    "no observations": (lambda f: d4rl(f, obs=None), "observations: is missing"),
    "no actions": (lambda f: d4rl(f, action=None), "actions: is missing"),
    "nothing at all": (lambda f: edited(f, lambda h: h.clear()), "observations: is missing"),
    "one number for observations": (lambda f: d4rl(f, obs=np.float32(1)), "its shape is ()"),
    "observations with three axes": (
        lambda f: d4rl(f, obs=np.zeros((ROWS, 2, 2))),
        "its shape is (21, 2, 2)",
    ),
    "a null dataspace": (lambda f: replaced(f, "rewards", data=h5py.Empty("f4")), "'rewards' is empty"),
    "no rows": (lambda f: d4rl(f, **{k: v[:0] for k, v in random_fields().items()}), "obs: has no rows"),
    "no columns": (lambda f: d4rl(f, obs=np.zeros((ROWS, 0))), "obs: has no columns"),
    "NaN": (lambda f: d4rl(f, obs=first("obs", NAN)), "obs, row 0: component 0 is NaN"),
    "infinity": (lambda f: d4rl(f, reward=first("reward", INF)), "reward, row 0: is infinite"),
    "minus infinity": (
        lambda f: d4rl(f, action=first("action", -INF)),
        "action, row 0: component 0 is infinite",
    ),
    "too large for single precision": (
        lambda f: d4rl(f, next_obs=first("next_obs", 1e300)),
        "is too large, 1e+300",
    ),
    "text of fixed length": (
        lambda f: d4rl(f, reward=np.full(ROWS, b"one")),
        "reward, row 0: is not numeric",
    ),
    "text of any length": (lambda f: d4rl(f, reward=["one"] * ROWS), "'rewards' holds text or objects"),
    "rows of any length": (
        lambda f: replaced(f, "observations", shape=(ROWS,), dtype=VLEN),
        "holds text or objects",
    ),
    "references": (
        lambda f: replaced(f, "observations", shape=(ROWS,), dtype=h5py.ref_dtype),
        "'observations' holds text or objects",
    ),
    "a record type": (
        lambda f: d4rl(f, obs=np.zeros(ROWS, [("x", "f4"), ("y", "f4")])),
        "obs, row 0: is not numeric",
    ),
    "opaque bytes": (lambda f: d4rl(f, obs=np.zeros(ROWS, "V8")), "obs, row 0: is not numeric"),
    "complex numbers": (lambda f: d4rl(f, obs=np.zeros((ROWS, 3), complex)), "obs, row 0: is not numeric"),
    "rewards too short": (lambda f: d4rl(f, reward=np.zeros(5)), "reward: has 5 rows, but obs has 21"),
    "actions too long": (lambda f: d4rl(f, action=np.zeros((99, 2))), "action: has 99 rows, but obs has 21"),
    "next observations too narrow": (
        lambda f: d4rl(f, next_obs=np.zeros((ROWS, 2))),
        "has 2 columns, but obs has 3",
    ),
    "two rewards a row": (lambda f: d4rl(f, reward=np.zeros((ROWS, 2))), "must have one number per row"),
    "a flag of two": (
        lambda f: d4rl(f, terminated=np.full(ROWS, 2)),
        "terminated, row 0: must be 0 or 1, but is 2",
    ),
    "a flag of NaN": (lambda f: d4rl(f, truncated=np.full(ROWS, NAN)), "truncated, row 0: must be 0 or 1"),
    "a flag of text": (
        lambda f: d4rl(f, terminated=np.full(ROWS, b"no")),
        "terminated, row 0: is not numeric",
    ),
    "more rows than any file holds": (
        lambda f: replaced(f, "observations", shape=(10**15, 3), dtype="f4", chunks=(1000, 3)),
        BOMB,
    ),
    "rows that were never written": (
        lambda f: replaced(f, "observations", shape=(10**8, 3), dtype="f4", chunks=(1000, 3)),
        "claim to hold 1,200,000,000 of 'observations'",
    ),
    "small numbers that grow": (
        lambda f: replaced(f, "rewards", shape=(10**8,), dtype="i1", chunks=(10**6,)),
        BOMB,
    ),
    "infos that were never written": (
        lambda f: edited(f, lambda h: h.create_dataset("infos/x", (ROWS, 10**8), "f4", chunks=(1, 10**6))),
        "'infos/x'",
    ),
    "Minari's layout": (
        lambda f: edited(f, lambda h: (h.clear(), h.create_group("episode_0"))),
        "the file looks like Minari's",
    ),
    "the first signature alone": (lambda f: raw(f, "log.hdf5", b"\x89HDF\r\n\x1a\n"), DAMAGED),
    "another beginning": (lambda f: raw(f, "log.h5", b"x" * 100), "is not an HDF5 file"),
    **{
        f"cut at {share}": (lambda f, share=share: cut(d4rl(f), share), DAMAGED)
        for share in (9, 48, 96, 0.5, 0.99)
    },
}


def tampered(folder: Path, name: str, *, suffix: str = ".hdf5") -> Path:
    """A file of ours where an array has other numbers, and nobody told the header."""
    path = ours(folder, suffix)
    with h5py.File(path, "a") as file:
        array: Any = file[name]
        array[()] = ~array[()] if array.dtype == bool else -array[()]
    return path


def tampered_npz(folder: Path) -> Path:
    path = ours(folder, ".npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, allow_pickle=True, **{**arrays, "reward": -arrays["reward"]})
    return path


CHANGED = "was changed or damaged after it was written"

HEADERS: Cases = {
    "rewards turned round": (lambda f: tampered(f, "rewards"), CHANGED),
    "rewards turned round in an npz": (tampered_npz, CHANGED),
    "observations turned round": (lambda f: tampered(f, "observations"), CHANGED),
    "actions turned round": (lambda f: tampered(f, "actions"), CHANGED),
    "another checksum": (lambda f: with_field(f, "checksum", "0" * 64), CHANGED),
    "rewards called absent": (lambda f: with_field(f, "absent", ["reward"]), CHANGED),
    "rewards deleted": (lambda f: deleted(ours(f), "rewards"), CHANGED),
    "not JSON": (lambda f: with_header(f, "not json"), "header: the stored metadata is damaged"),
    "empty": (lambda f: with_header(f, " "), "header: the stored metadata is damaged"),
    "a list": (lambda f: with_header(f, "[1]"), "header: the stored metadata is damaged"),
    "null": (lambda f: with_header(f, "null"), "header: the stored metadata is damaged"),
    "a number": (lambda f: with_header(f, "7"), "header: the stored metadata is damaged"),
    "deep lists": (lambda f: with_header(f, "[" * 100_000), "header: the stored metadata is damaged"),
    "deep objects": (lambda f: with_header(f, '{"a":' * 50_000), "header: the stored metadata is damaged"),
    "not UTF-8": (lambda f: with_header(f, b'{"format": "\xff"}'), "header: the stored metadata is damaged"),
    "a number of 5000 digits": (
        lambda f: with_header(f, "1" * 5000),
        "header: the stored metadata is damaged",
    ),
    "numbers for text": (lambda f: replaced_header(f, np.zeros(3)), "header: the stored metadata is damaged"),
    "an array of text": (
        lambda f: replaced_header(f, [b"{}", b"{}"]),
        "'metadata/mcetm' holds text or objects",
    ),
    "a group for text": (lambda f: replaced_header(f, None), "'metadata/mcetm' is not an array"),
    "no format": (lambda f: with_header(f, "{}"), "header: is of format None"),
    "escapes for a format": (lambda f: with_field(f, "format", "\x1b[31m"), "header: is of format"),
    **{
        f"{name} is {json.dumps(value) if value is not KeyError else 'missing'}": (
            lambda f, name=name, value=value: with_field(f, name, value),
            "header: is of format" if name == "format" else f"the stored metadata is damaged: '{name}'",
        )
        for name, values in {
            "format": (2, "1", None, [], KeyError),
            "checksum": (None, 5, "", "0" * 63, "G" * 64, KeyError),
            "task": (5, [], {}, True, KeyError),
            "action_low": ("x", [NAN], ["a"], [[1.0]], {}, [True], [10**400], 1.0, KeyError),
            "action_high": ("x", [None], KeyError),
            "absent": (["obs"], "reward", [1], None, ["next_obs"], KeyError),
            "dropped": (-1, 1.5, INF, "3", True, None, 10**20, KeyError),
            "notes": ("x", [1], None, {}, KeyError),
            "provenance": ([], None, 3, "x", KeyError),
            "obs_names": ("abc", [1, 2, 3], ["a", "b", "a"], ["a", "b", "\x1b[2J"], ["", "b", "c"], {}),
            "action_names": (True, [None, None], ["x" * 201, "y"], [["a"], ["b"]], ["\ud800", "y"]),
            "reward_name": ("", "a\nb", 3, ["cost"]),
        }.items()
        for value in values
    },
    "bounds of another width": (
        lambda f: with_field(f, "action_low", [-1.0]),
        "has 1 lower and 2 upper bounds",
    ),
    "names for other columns": (
        lambda f: with_field(f, "obs_names", ["a", "b"]),
        "obs_names: has 2 names, but obs has 3 columns",
    ),
    "bounds upside down": (
        lambda f: with_field(f, "action_low", [2.0, 2.0]),
        "a lower bound above its upper one",
    ),
    "one bound only": (lambda f: with_field(f, "action_low", None), "give both or none"),
    "bounds too narrow": (lambda f: with_field(f, "action_high", [-0.9, -0.9]), "outside its bounds"),
}


def deleted(path: Path, name: str) -> Path:
    with h5py.File(path, "a") as file:
        del file[name]
    return path


def replaced_header(folder: Path, data: Any) -> Path:
    path = deleted(ours(folder), "metadata/mcetm")
    with h5py.File(path, "a") as file:
        if data is None:
            file.create_group("metadata/mcetm")
        else:
            file.create_dataset("metadata/mcetm", data=data)
    return path


def shape_header(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


def with_obs(header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> Build:
    return lambda f: files.zipped(f, ("obs.npy", files.npy_header(header, body, version)))


def flagged(folder: Path, *, bit: int, method: int) -> Path:
    """An archive whose members say they are encrypted, or compressed in another way."""
    content = bytearray(npz(folder).read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        while at >= 0:
            content[at + flags] |= bit
            if method:
                content[at + flags + 2] = method
            at = content.find(signature, at + 4)
    return raw(folder, "log.npz", bytes(content))


NPZ: Cases = {
    "objects": (lambda f: npz(f, obs=np.array([{}] * ROWS, object)), "holds Python objects"),
    "objects in infos": (
        lambda f: npz(f, **{"infos/x": np.array([{}] * ROWS, object)}),
        "holds Python objects",
    ),
    "records with objects": (with_obs(shape_header("(1,)", "[('a', '|O')]")), "holds Python objects"),
    "no arrays": (lambda f: files.zipped(f), "obs: is missing; the file has nothing"),
    "another member": (lambda f: files.zipped(f, ("data.pkl", b"\x80\x04N.")), "it holds 'data.pkl'"),
    "a member with escapes": (lambda f: files.zipped(f, ("\x1b[2J", b"")), r"it holds '\x1b[2J'"),
    "a member that climbs": (lambda f: files.zipped(f, ("../../x", b"")), "it holds '../../x'"),
    "an empty member": (lambda f: files.zipped(f, ("obs.npy", b"")), DAMAGED),
    "a member of noise": (lambda f: files.zipped(f, ("obs.npy", b"noise" * 100)), DAMAGED),
    "a header without a body": (
        with_obs(shape_header("(21, 3)")),
        "does not have the size of its shape (21, 3)",
    ),
    "a body too long": (with_obs(shape_header("(1,)"), b"\0" * 8), "does not have the size of its shape"),
    "a shape too large for any memory": (with_obs(shape_header(f"({2**62},)")), DAMAGED),
    "a shape that overflows": (with_obs(shape_header(f"({10**30}, {10**30})")), DAMAGED),
    "a negative shape": (with_obs(shape_header("(-21, 3)")), DAMAGED),
    "two negative sizes": (with_obs(shape_header("(-1, -1)"), b"\0" * 4), DAMAGED),
    "a shape of text": (with_obs(shape_header("'abc'")), DAMAGED),
    "entries without size": (with_obs(shape_header("(1000000000000,)", "'<U0'")), BOMB),
    "a type that is none": (with_obs(shape_header("(1,)", "'nonsense'")), DAMAGED),
    "a header that calls": (with_obs(shape_header("__import__('os').getcwd()")), DAMAGED),
    "a header too deep": (with_obs("(" * 5000), DAMAGED),
    "a header of signs": (with_obs("-" * 9000 + "1"), DAMAGED),
    "a header too long": (with_obs(" " * 60_000), DAMAGED),
    "a header of version 9": (with_obs(shape_header("(1,)"), version=b"\x09\x00"), DAMAGED),
    "observations twice": (
        lambda f: twice(f),
        "it holds 'obs.npy' twice",
    ),
    "zeros that unfold": (lambda f: npz(f, obs=np.zeros((3 * 10**7, 1), bool)), BOMB),
    "infos that unfold": (lambda f: npz(f, **{"infos/x": np.zeros(3 * 10**7, bool)}), BOMB),
    "encrypted": (lambda f: flagged(f, bit=1, method=0), DAMAGED),
    "compressed in another way": (lambda f: flagged(f, bit=0, method=99), DAMAGED),
    "no observations": (lambda f: npz(f, obs=None), "obs: is missing; the file has 'action'"),
    "a policy": (
        lambda f: files.zipped(f, ("last_fc/weight.npy", files.npy(np.zeros(3)))),
        "this looks like a policy",
    ),
    "one number for observations": (lambda f: npz(f, obs=np.float32(1)), "its shape is ()"),
    "text": (lambda f: npz(f, reward=np.array(["one"] * ROWS)), "reward, row 0: is not numeric, 'one'"),
    "dates": (lambda f: npz(f, reward=np.zeros(ROWS, "M8[s]")), "reward, row 0: is not numeric"),
    "NaN": (lambda f: npz(f, reward=np.full(ROWS, NAN)), "reward, row 0: is NaN (and 20 more rows"),
    "two lengths": (lambda f: npz(f, action=np.zeros((3, 2))), "action: has 3 rows, but obs has 21"),
    "infos of another length": (lambda f: npz(f, **{"infos/x": np.zeros(3)}), "infos/x: has the shape (3,)"),
    "an episode that returns": (
        lambda f: npz(f, episode=[*[1] * 7, *[2] * 7, *[1] * 7]),
        "starts again after another",
    ),
    "a header that is no text": (
        lambda f: npz(f, mcetm=np.zeros(3)),
        "header: the stored metadata is damaged",
    ),
    "too few rows": (
        lambda f: npz(f, **{k: v[:3] for k, v in random_fields().items()}),
        "only 3 usable transitions",
    ),
    **{
        f"cut at {share}": (lambda f, share=share: cut(npz(f), share), DAMAGED)
        for share in (4, 30, 0.5, 0.99)
    },
}


def twice(folder: Path) -> Path:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return files.zipped(folder, *[("obs.npy", files.npy(random_fields()["obs"]))] * 2)


def at(row: int, change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    """Change one line; line 0 is the header."""
    return lambda lines: [change(line) if i == row else line for i, line in enumerate(lines)]


def body(change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    return lambda lines: [lines[0], *map(change, lines[1:])]


def cell(value: str) -> Callable[[list[str]], list[str]]:
    """Another first cell in row 2."""
    return at(3, lambda line: ",".join([value, *line.split(",")[1:]]))


CSV: Cases = {
    "one cell too many": (
        lambda f: csv(f, at(5, lambda line: f"{line},1")),
        "table, row 4: has 12 cells, but the header has 11",
    ),
    "an index without a name": (
        lambda f: csv(f, body(lambda line: f"0,{line}")),
        "table, row 0: has 12 cells",
    ),
    "a comma at the end of rows": (
        lambda f: csv(f, body(lambda line: f"{line},")),
        "table, row 0: has 12 cells",
    ),
    "one cell too few": (
        lambda f: csv(f, at(5, lambda line: line.rpartition(",")[0])),
        "table, row 4: has 10 cells",
    ),
    "a quoted cell too many": (
        lambda f: csv(f, at(5, lambda line: f'{line},"1"')),
        "table, row 4: has 12 cells",
    ),
    "a comma in quotes": (
        lambda f: csv(f, at(2, lambda line: f'"1,5"{line[line.index(",") :]}')),
        "obs_0, row 1: is not numeric, '1,5'",
    ),
    "too many cells behind a carriage return": (
        lambda f: raw(
            f, "log.csv", csv(f, at(5, lambda line: f"{line},1")).read_bytes().replace(b"\n", b"\r")
        ),
        "table, row 4: has 12 cells",
    ),
    "too many cells in Windows' lines": (
        lambda f: raw(
            f, "log.csv", csv(f, at(5, lambda line: f"{line},1")).read_bytes().replace(b"\n", b"\r\n")
        ),
        "table, row 4: has 12 cells",
    ),
    "obs_00 beside obs_0": (lambda f: csv(f, obs_00=[0.0] * ROWS), "obs_00: must be written obs_0"),
    "obs_01 for obs_1": (
        lambda f: csv(f, at(0, lambda line: line.replace("obs_1", "obs_01", 1))),
        "obs_01: must be written obs_1",
    ),
    "a column left out": (lambda f: csv(f, obs_1=None), "obs_1: is missing, though there is obs_2"),
    "a column of number a billion": (
        lambda f: csv(f, obs_999999=[0.0] * ROWS),
        "obs_3: is missing, though there is obs_999999",
    ),
    "a column twice": (
        lambda f: csv(f, at(0, lambda line: line.replace("obs_1", "obs_0", 1))),
        "obs_0: appears twice",
    ),
    "no observations": (lambda f: csv(f, obs_0=None, obs_1=None, obs_2=None), "obs_0: is missing"),
    "other digits": (
        lambda f: csv(f, at(0, lambda line: line.replace("obs_0", "obs_٠"))),
        "obs_0: is missing",
    ),
    "no known column": (lambda f: raw(f, "log.csv", b"a,b\n1,2\n"), "no column has a known name"),
    "escapes and no known column": (
        lambda f: raw(f, "log.csv", b"\x1b[2J,b\n1,2\n"),
        "no column has a known name",
    ),
    "a header alone": (lambda f: csv(f, lambda lines: lines[:1]), "obs: has no rows"),
    "one empty line": (lambda f: raw(f, "log.csv", b"\n"), "no column has a known name"),
    "nothing": (lambda f: raw(f, "log.csv", b""), "is empty"),
    "NUL": (lambda f: raw(f, "log.csv", b"obs_0\n\0\n"), "is of no kind this reads"),
    "NUL far below": (
        lambda f: csv(f, lambda lines: [*lines, *lines[1:] * 30, lines[1].replace("0", "\0")]),
        "log.csv",
    ),
    "UTF-16 cut": (lambda f: raw(f, "log.csv", "obs_0\n1\n".encode("utf-16")[:-1]), "is not a table of text"),
    "no text at all": (lambda f: raw(f, "log.csv", b"obs_0,\x81\n1,2\n"), "is not a table of text in UTF-8"),
    "not UTF-8 below": (lambda f: raw(f, "log.csv", b"obs_0,x\n" + b"1,a\n" * 20 + b"1,\xff\n"), "log.csv"),
    "text": (lambda f: csv(f, cell("one")), "obs_0, row 2: is not numeric, 'one'"),
    "escapes": (lambda f: csv(f, cell("\x1b[31m")), r"obs_0, row 2: is not numeric, '\x1b[31m'"),
    "an empty cell": (lambda f: csv(f, cell("")), "obs_0, row 2: is empty"),
    "nan": (lambda f: csv(f, cell("nan")), "component 0 is NaN"),
    "inf": (lambda f: csv(f, cell("-inf")), "component 0 is infinite"),
    "1e999": (lambda f: csv(f, cell("1e999")), "component 0 is infinite"),
    "1e99": (lambda f: csv(f, cell("1e99")), "component 0 is too large"),
    "a complex number": (lambda f: csv(f, cell("1+2j")), "obs_0, row 2: is not numeric"),
    "a number in hexadecimal": (lambda f: csv(f, cell("0x10")), "obs_0, row 2: is not numeric"),
    "a number with underscores": (lambda f: csv(f, cell("1_000")), "obs_0, row 2: is not numeric, '1_000'"),
    "a number in other digits": (lambda f: csv(f, cell("\u0661")), "obs_0, row 2: is not numeric, '\u0661'"),
    "a formula that failed": (lambda f: csv(f, cell("#DIV/0!")), "obs_0, row 2: is not numeric, '#DIV/0!'"),
    "thousands in odd groups": (
        lambda f: csv(f, cell('"1,0000.5"')),
        "obs_0, row 2: is not numeric, '1,0000.5'",
    ),
    "rows of commas alone": (lambda f: csv(f, lambda lines: [*lines, "," * 10]), "obs_0, row 21: is empty"),
    "two tables below each other": (
        lambda f: csv(f, lambda lines: [*lines, *lines]),
        "obs_0, row 21: is not numeric, 'obs_0'",
    ),
    "forty thousand columns": (
        lambda f: raw(f, "log.csv", b",".join(b"obs_%d" % i for i in range(40_000)) + b"\n"),
        "obs: has no rows",
    ),
    "compressed": (
        lambda f: raw(f, "log.csv", gzip.compress(csv(f).read_bytes())),
        "is of no kind this reads",
    ),
    "a decimal comma": (lambda f: csv(f, cell('"1,5"')), "obs_0, row 2: is not numeric, '1,5'"),
    "a cell of a megabyte": (lambda f: csv(f, cell("1" * 10**6)), "log.csv"),
    "a quote without an end": (lambda f: csv(f, cell('"1')), "log.csv"),
    "a flag of words": (
        lambda f: csv(f, terminated=["yes"] * ROWS),
        "terminated, row 0: is not numeric, 'yes'",
    ),
    "a flag of two": (lambda f: csv(f, truncated=[2] * ROWS), "truncated, row 0: must be 0 or 1, but is 2"),
    "comments": (lambda f: csv(f, lambda lines: ["# made by me", *lines]), "no column has a known name"),
    "a label that returns": (
        lambda f: csv(f, episode=[*"aaaaaaabbbbbbbaaaaaaa"]),
        "starts again after another one",
    ),
    "a label left out": (
        lambda f: csv(f, episode=[*"aaaaaaa", *[""] * 7, *"ccccccc"]),
        "episode, row 7: is empty",
    ),
}


PARQUET: Cases = {
    **{
        f"cut at {share}": (lambda f, share=share: cut(parquet(f), share), DAMAGED)
        for share in (4, 12, 0.5, 0.99)
    },
    "the first signature alone": (lambda f: raw(f, "log.parquet", b"PAR1"), DAMAGED),
    "two signatures": (lambda f: raw(f, "log.parquet", b"PAR1\xff\xff\xff\x7fPAR1"), DAMAGED),
    "a number left out": (lambda f: parquet(f, obs_0=[None] * ROWS), "obs_0"),
    "text": (lambda f: parquet(f, obs_0=["one"] * ROWS), "obs_0, row 0: is not numeric, 'one'"),
    "lists": (lambda f: parquet(f, obs_0=[[1.0]] * ROWS), "obs_0, row 0: is not numeric"),
    "records": (lambda f: parquet(f, obs_0=[{"x": 1.0}] * ROWS), "obs_0, row 0: is not numeric"),
    "NaN": (lambda f: parquet(f, reward=[NAN] * ROWS), "reward, row 0: is NaN"),
    "too large": (lambda f: parquet(f, reward=[1e300] * ROWS), "reward, row 0: is too large"),
    "obs_00 beside obs_0": (lambda f: parquet(f, obs_00=[0.0] * ROWS), "obs_00: must be written obs_0"),
    "a column left out": (lambda f: parquet(f, obs_1=None), "obs_1: is missing, though there is obs_2"),
    "no observations": (lambda f: parquet(f, obs_0=None, obs_1=None, obs_2=None), "obs_0: is missing"),
    "a flag of two": (lambda f: parquet(f, terminated=[2] * ROWS), "must be 0 or 1, but is 2"),
    "twenty million equal rows": (lambda f: many_rows(f), BOMB),
}


def many_rows(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    path = folder / "log.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"obs_0": np.zeros(2 * 10**7, np.int8)}), path)
    return path


def device(name: str) -> Build:
    """A link to a device, under a name that promises data."""

    def build(folder: Path) -> Path:
        (folder / "log.csv").symlink_to(name)
        return folder / "log.csv"

    return build


def bound_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "log.csv"))
    return folder / "log.csv"


PATHS: Cases = {
    **{
        f"a pipe called {name}": (
            lambda f, name=name: Path(fifo(f, name)),
            "it is a device or a pipe, not a file",
        )
        for name in ("log.hdf5", "log.npz", "log.csv", "log.parquet", "log")
    },
    **{
        f"a link to {name}": (device(name), "it is a device or a pipe, not a file")
        for name in ("/dev/zero", "/dev/null", "/dev/full", "/dev/urandom")
    },
    "a socket": (bound_socket, "it is a device or a pipe, not a file"),
    "a link to nothing": (device("nothing-here"), "There is no file"),
    "a link to itself": (device("log.csv"), "Cannot look at"),
    "a folder": (lambda f: f, "is a folder"),
    "a name too long": (lambda f: f / f"{'x' * 300}.csv", "File name too long"),
    "a file for a folder": (lambda f: raw(f, "x", b"") / "log.csv", "There is no file"),
    "NUL in the name": (lambda f: f / "a\0b.csv", r"There is no file"),
    "escapes in the name": (lambda f: f / "\x1b[2J.csv", r"\x1b[2J.csv"),
    "markup in the name": (lambda f: f / "[/red].csv", "[/red].csv"),
    "a pickle": (lambda f: raw(f, "log.pkl", pickle.dumps([1])), "is a pickle"),
    "a pickle in disguise": (lambda f: raw(f, "log.csv", pickle.dumps([1])), "is a pickle"),
    "a picture": (lambda f: raw(f, "log.png", b"\x89PNG\r\n\x1a\n" + b"0" * 99), "is of no kind this reads"),
    "JSON": (lambda f: raw(f, "log.json", b"{}"), "is of no kind this reads"),
}

BAD = {
    f"{kind}: {name}": case
    for kind, cases in {
        "hdf5": HDF5,
        "header": HEADERS,
        "npz": NPZ,
        "csv": CSV,
        "parquet": PARQUET,
        "path": PATHS,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_sentence_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    build, words = BAD[case]
    source = build(tmp_path)
    before = contents(tmp_path)
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), words)
    assert contents(tmp_path) == before


def test_the_corpus_is_large_enough() -> None:
    assert len(BAD) + len(GOOD) >= 200


GOOD: dict[str, Build] = {
    "hdf5": d4rl,
    "hdf5: a soft link": lambda f: edited(
        f, lambda h: (h.move("rewards", "x"), link(h, "rewards", h5py.SoftLink("/x")))
    ),
    "hdf5: a circle of groups": lambda f: edited(f, lambda h: link(h.create_group("g"), "g", h["g"])),
    "hdf5: infos that is an array": lambda f: edited(
        f, lambda h: h.create_dataset("infos", data=np.zeros(3))
    ),
    "hdf5: double precision": lambda f: d4rl(f, obs=random_fields()["obs"].astype(np.float64)),
    "hdf5: big-endian": lambda f: d4rl(f, obs=random_fields()["obs"].astype(">f4")),
    "hdf5: compressed": lambda f: replaced(
        f, "rewards", data=random_fields()["reward"], compression="gzip", shuffle=True
    ),
    "hdf5: huge and unused": lambda f: edited(
        f, lambda h: h.create_dataset("x", (10**15,), "f4", chunks=(10**6,))
    ),
    "hdf5: external and unused": lambda f: edited(
        f, lambda h: h.create_dataset("x", (9,), "u1", external=[("/etc/passwd", 0, 9)])
    ),
    "hdf5: ours": ours,
    "npz": npz,
    "npz: ours": lambda f: ours(f, ".npz"),
    "npz: columns first": lambda f: npz(f, obs=np.asfortranarray(random_fields()["obs"])),
    "npz: huge and unused": lambda f: npz(f, junk=np.zeros(3 * 10**7, bool)),
    "npz: objects, unused": lambda f: npz(f, junk=np.array([{}], object)),
    "csv": csv,
    "csv: tabs": lambda f: raw(f, "log.tsv", csv(f).read_bytes().replace(b",", b"\t")),
    "csv: Windows' lines": lambda f: raw(f, "log.csv", csv(f).read_bytes().replace(b"\n", b"\r\n")),
    "csv: carriage returns": lambda f: raw(f, "log.csv", csv(f).read_bytes().replace(b"\n", b"\r")),
    "csv: a byte-order mark": lambda f: raw(f, "log.csv", b"\xef\xbb\xbf" + csv(f).read_bytes()),
    "csv: empty lines": lambda f: raw(f, "log.csv", csv(f).read_bytes().replace(b"\n", b"\n\n")),
    "csv: no last line's end": lambda f: raw(f, "log.csv", csv(f).read_bytes().rstrip(b"\n")),
    "csv: quoted": lambda f: csv(
        f, lambda lines: [",".join(f'"{c}"' for c in line.split(",")) for line in lines]
    ),
    "csv: an index as pandas writes it": lambda f: csv(
        f, lambda lines: [f",{lines[0]}", *(f"{i},{x}" for i, x in enumerate(lines[1:]))]
    ),
    "csv: escapes in a name": lambda f: csv(f, **{"\x1b[2J\x07": [0] * ROWS}),
    "csv: markup in a name": lambda f: csv(f, **{"[/red][bold]": [0] * ROWS}),
    "csv: a line's end in a name": lambda f: named_by_two_lines(f),
    "parquet": parquet,
    "parquet: text, unused": lambda f: parquet(f, note=["\x1b[31m"] * ROWS),
    "parquet: escapes in a name": lambda f: parquet(f, **{"\x1b[2J": [0] * ROWS}),
    "parquet: a name with a dot": lambda f: parquet(f, **{"obs.0": [0] * ROWS}),
    "header: shares that are none": lambda f: with_field(
        f, "provenance", {"shares": 5, "note": [1], "environment": {"a": 1}}
    ),
    "header: shares of another kind": lambda f: with_field(
        f, "provenance", {"shares": [1, {"policies": 3}, {"policies": [[1]]}]}
    ),
    "header: escapes in notes": lambda f: with_field(f, "notes", ["\x1b[2J[/red]\nnext"]),
    "header: a task from far away": lambda f: with_field(f, "task", "os:system\x1b[2J"),
    "header: endless bounds": lambda f: with_field(f, "action_low", [-INF, -INF]),
}


def named_by_two_lines(folder: Path) -> Path:
    lines = csv(folder).read_text().splitlines()
    text = "\n".join([f'{lines[0]},"a\nb"', *(f"{line},0" for line in lines[1:])])
    return raw(folder, "log.csv", text.encode())


@pytest.mark.parametrize("case", GOOD)
def test_an_odd_file_that_is_good_is_read(case: str, tmp_path: Path) -> None:
    source = GOOD[case](tmp_path)
    found = run("data", "inspect", source, "--json")
    assert found.code == 0, found.err
    card = json.loads(found.out)
    assert (card["transitions"], card["checksum"]) == (ROWS, EXPECTED), card["warnings"]
    shown = run("data", "inspect", source)
    assert (shown.code, shown.err) == (0, "")
    assert all(line.isprintable() for line in shown.out.splitlines()), shown.out


EXPECTED = files.good_log().checksum


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_training_refuses_data_that_were_changed(suffix: str, tmp_path: Path) -> None:
    source = tampered(tmp_path, "rewards") if suffix == ".hdf5" else tampered_npz(tmp_path)
    assert_refused(run("train", "--dataset", source, "--out", tmp_path / "run"), CHANGED)
    assert not (tmp_path / "run").exists()


def test_a_zip_that_lists_one_member_often_is_not_unfolded(tmp_path: Path) -> None:
    """Many names for the same bytes: the sum of what they claim counts."""
    arrays = {f"infos/{i}": np.zeros((ROWS, 10**5), bool) for i in range(20)}
    source = npz(tmp_path, **arrays)
    with zipfile.ZipFile(source) as archive:
        largest = max(info.file_size for info in archive.infolist())
    assert largest < 4 * 10**6, "no single array is large"
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), BOMB)


@pytest.mark.parametrize("size", [3.3e38, 1e30, 1e-44, 0.0])
def test_numbers_at_the_end_of_single_precision_have_a_card(size: float, tmp_path: Path) -> None:
    fields = random_fields()
    for name in ("obs", "next_obs", "reward"):
        fields[name] = np.sign(fields[name]) * np.float32(size)
    fields["next_obs"][3] *= -1  # a gap that single precision cannot hold
    found = run("data", "inspect", d4rl(tmp_path, **fields), "--json")
    assert (found.code, found.err) == (0, "")
    card = json.loads(found.out)
    assert card["obs"]["maximum"] == [pytest.approx(float(np.float32(size)))] * 3
    assert card["continuity"]["broken"] == (size > 0)


def test_a_time_limit_beyond_all_rows_cuts_nothing(tmp_path: Path) -> None:
    source = d4rl(tmp_path, next_obs=None, truncated=None, terminated=None)
    found = run("data", "inspect", source, "--time-limit", str(2**31 - 1), "--json")
    assert json.loads(found.out)["episodes"] == 1
    assert_refused(
        run("data", "inspect", source, "--time-limit", "9" * 30), "'time_limit' should be a whole number"
    )


@pytest.mark.parametrize("kind", ["hdf5", "npz", "parquet"])
def test_a_good_file_that_the_memory_cannot_take_is_not_called_damaged(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"hdf5": d4rl, "npz": npz, "parquet": parquet}[kind](tmp_path)
    monkeypatch.setattr(formats, "free_memory", lambda: 100)
    words = f"There is not enough memory to read {source}: it takes"
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), words)


@pytest.mark.parametrize("kind", ["hdf5", "npz"])
def test_memory_that_runs_out_is_not_called_damage(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"hdf5": d4rl, "npz": npz}[kind](tmp_path)

    def allocate(*arguments: object, **options: object) -> None:
        raise MemoryError("Unable to allocate 1.00 GiB")

    monkeypatch.setattr(np.lib.format, "read_array", allocate)
    monkeypatch.setattr(h5py.Dataset, "__getitem__", allocate)
    words = f"There is not enough memory to read {source}."
    assert_refused(run("data", "convert", source, tmp_path / "out.hdf5"), words)

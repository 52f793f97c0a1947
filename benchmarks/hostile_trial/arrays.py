"""Files of arrays that cannot be: npz, HDF5, Parquet, Arrow."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
from pyarrow import feather, ipc, parquet

from hostile_trial.trial import Case, Place, command


def _npy(array: Any, *, pickled: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=pickled)
    return stream.getvalue()


def _zip(members: dict[str, bytes], **options: Any) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        with zipfile.ZipFile(place.folder / "log.npz", "w", **options) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return prepare


def _npz(**changes: Any) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        rng = np.random.default_rng(0)
        fields = {
            "obs": rng.normal(size=(30, 2)),
            "action": rng.uniform(-1, 1, (30, 1)),
            "reward": np.zeros(30),
            **changes,
        }
        np.savez(
            place.folder / "log.npz", **{k: v for k, v in fields.items() if v is not None}, allow_pickle=True
        )

    return prepare


def _header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin-1")


_ZEROS = np.zeros((30, 2))


def archives() -> Iterator[Case]:
    """`.npz` files."""
    made: dict[str, Callable[[Place], None]] = {
        "no obs": _npz(obs=None), "obs of one axis": _npz(obs=np.zeros(30)), "obs of three": _npz(obs=np.zeros((30, 2, 2))),
        "obs of no columns": _npz(obs=np.zeros((30, 0))), "no rows": _npz(obs=np.zeros((0, 2)), action=np.zeros((0, 1)), reward=np.zeros(0)),
        "a scalar": _npz(obs=np.float64(3)), "complex": _npz(obs=_ZEROS.astype(complex)), "text": _npz(obs=_ZEROS.astype(str)),
        "bytes": _npz(obs=_ZEROS.astype("S4")), "dates": _npz(obs=np.full((30, 2), np.datetime64("2024-01-01"))),
        "objects": _npz(obs=np.array([[object()] * 2] * 3, dtype=object)), "void": _npz(obs=np.zeros((30, 2), "V8")),
        "records": _npz(obs=np.zeros(30, [("a", "f4"), ("b", "f4")])), "nan": _npz(obs=np.full((30, 2), np.nan)),
        "inf": _npz(reward=np.full(30, np.inf)), "too large": _npz(reward=np.full(30, 1e300)), "a longer reward": _npz(reward=np.zeros(31)),
        "reward of two columns": _npz(reward=np.zeros((30, 2))), "flags of 7": _npz(terminated=np.full(30, 7)),
        "flags NaN": _npz(terminated=np.full(30, np.nan)), "flags text": _npz(truncated=np.full(30, "yes")), "flags short": _npz(truncated=np.zeros(3)),
        "episode of floats": _npz(episode=np.full(30, np.nan)), "episode of objects": _npz(episode=np.array([None] * 30)),
        "episode of another length": _npz(episode=np.zeros(3)), "next_obs wide": _npz(next_obs=np.zeros((30, 3))), "next_obs NaN": _npz(next_obs=np.full((30, 2), np.nan)),
        "no members": _zip({}), "not arrays": _zip({"a.txt": b"hello"}), "a folder": _zip({"../obs.npy": _npy(_ZEROS)}),
        "a member without an array": _zip({"obs.npy": b""}), "header that lies": _zip({"obs.npy": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 99)}\n")}),
        "header of code": _zip({"obs.npy": _header("__import__('os').system('touch ran')\n")}), "negative shape": _zip({"obs.npy": _header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }\n")}),
        "header of 60,000 brackets": _zip({"obs.npy": _header("(" * 60000 + "\n")}), "pickle inside": _zip({"obs.npy": _npy(np.array([{}], dtype=object), pickled=True)}),
        "a bomb": _zip({"obs.npy": _npy(np.zeros((20_000_000, 2), np.float32))}, compression=zipfile.ZIP_DEFLATED, compresslevel=9),
        "metadata": _npz(metadata=np.bytes_(b"{")), "metadata not bytes": _npz(metadata=np.zeros(3)), "metadata deep": _npz(metadata=np.bytes_(b"[" * 9000)),
        "header of ours": _npz(mcetm=np.array("{}")), "float16 overflow": _npz(obs=np.full((30, 2), 6e4, np.float16) * np.float16(2)),
        "longdouble": _npz(obs=_ZEROS.astype(np.longdouble)), "huge integers": _npz(obs=np.full((30, 2), 2**63 - 1)), "uint64 flags": _npz(terminated=np.full(30, 2**63, np.uint64)),
        "actions beyond bounds": _npz(action=np.full((30, 1), 1e38)), "empty action": _npz(action=np.zeros((30, 0))),
    }  # fmt: skip
    may = {"longdouble", "huge integers", "empty action", "actions beyond bounds", "metadata", "metadata not bytes", "metadata deep",
           "header of ours", "next_obs NaN"}  # fmt: skip
    for name, prepare in made.items():
        yield command(
            "npz",
            name,
            "data",
            "inspect",
            "log.npz",
            prepare=prepare,
            words=("log.npz",),
            expect="either" if name in may else "refused",
        )
    for name in list(made)[::3]:
        yield command(
            "npz",
            f"train: {name}",
            "train",
            "log.npz",
            "--algo",
            "bc",
            "--out",
            "run",
            "--seeds",
            1,
            "--set",
            "algorithm.steps=5",
            "algorithm.width=4",
            prepare=made[name],
            words=("log.npz", "reward", "action", "diverged"),
            expect="either" if name in may else "refused",
        )
        yield command(
            "npz",
            f"trust: {name}",
            "trust",
            "{m}/mopo",
            "log.npz",
            prepare=made[name],
            words=("log.npz", "width"),
        )


def hdf5() -> Iterator[Case]:
    """HDF5 in D4RL's layout, and files of ours."""

    def edited(name: str, edit: Callable[[Any], object]) -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            path = place.copy(name, "log.hdf5")
            with h5py.File(path, "a") as file:
                edit(file)

        return prepare

    def put(field: str, value: Any) -> Callable[[Any], object]:
        def edit(file: Any) -> None:
            del file[field]
            if value is not None:
                file[field] = value

        return edit

    foreign = {
        "no observations": put("observations", None), "no actions": put("actions", None), "a group": lambda f: (f.__delitem__("rewards"), f.create_group("rewards")),
        "strings": put("rewards", np.array([b"a"] * 60)), "vlen": lambda f: (f.__delitem__("rewards"), f.create_dataset("rewards", (60,), h5py.vlen_dtype("f4"))),
        "compound": put("rewards", np.zeros(60, [("a", "f4")])), "enum flags": put("terminals", np.full(60, 3, np.int8)), "empty": put("rewards", h5py.Empty("f4")),
        "soft link to nothing": put("rewards", h5py.SoftLink("/nowhere")), "soft link to itself": put("rewards", h5py.SoftLink("/rewards")),
        "external link": put("rewards", h5py.ExternalLink("/etc/passwd", "/x")), "reference": put("rewards", np.zeros(60, "f4").view("V4")),
        "rewards of 61": put("rewards", np.zeros(61)), "rewards NaN": put("rewards", np.full(60, np.nan)), "huge": lambda f: (f.__delitem__("rewards"), f.create_dataset("rewards", (10**11,), "f4", chunks=(10**6,))),
        "actions of three axes": put("actions", np.zeros((60, 1, 1))), "timeouts of text": put("timeouts", np.array([b"no"] * 60)), "opaque": put("rewards", np.void(b"abc")),
        "cyclic groups": lambda f: f.create_group("infos").__setitem__("again", f["/"]), "a thousand groups": lambda f: [f.create_group(f"infos/{'x/' * 400}{i}") for i in range(3)],
        "metadata/mcetm group": lambda f: f.create_group("metadata/mcetm"), "metadata/mcetm number": lambda f: f.__setitem__("metadata/mcetm", 3),
        "metadata/mcetm words": lambda f: f.__setitem__("metadata/mcetm", "hello"), "policy without arrays": lambda f: f.create_group("metadata/policy"),
    }  # fmt: skip
    may = {"cyclic groups", "a thousand groups", "policy without arrays"}
    for name, edit in foreign.items():
        yield command(
            "HDF5",
            name,
            "data",
            "inspect",
            "log.hdf5",
            prepare=edited("d4rl.hdf5", edit),
            words=("log.hdf5",),
            expect="either" if name in may else "refused",
        )
    with_header = {
        "no JSON": "{", "a list": "[]", "task is a number": '{"task": 3}', "task of a module": '{"task": "os:system"}', "bounds crossed": '{"action_low": [1], "action_high": [-1]}',
        "bounds NaN": '{"action_low": [NaN], "action_high": [1]}', "names too few": '{"obs_names": ["a"]}', "deep": "[" * 5000, "notes a number": '{"notes": 3}', "odd": '{"odd": 1}', "checksum": '{"checksum": "x"}',
    }  # fmt: skip
    for name, header in with_header.items():
        yield command(
            "HDF5",
            f"header of ours: {name}",
            "data",
            "inspect",
            "log.hdf5",
            words=("log.hdf5",),
            prepare=edited("log.hdf5", lambda f, h=header: put("metadata/mcetm", np.bytes_(h.encode()))(f)),
        )
    for field in ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations"):

        def flip(file: Any, field: str = field) -> None:
            values = file[field][()]
            values[3] = ~values[3] if values.dtype == bool else -values[3] - 1e-3
            file[field][...] = values

        yield command(
            "HDF5",
            f"changed: {field}",
            "data",
            "inspect",
            "log.hdf5",
            prepare=edited("log.hdf5", flip),
            words=("log.hdf5",),
        )
    for size in (9, 100, 700, 2000, 3000):

        def cut(place: Place, size: int = size) -> None:
            os.truncate(place.copy("d4rl.hdf5", "log.hdf5"), size)

        yield command(
            "HDF5",
            f"cut at {size}",
            "data",
            "convert",
            "log.hdf5",
            "out.npz",
            prepare=cut,
            words=("log.hdf5",),
        )


def columnar() -> Iterator[Case]:
    """Parquet, and what Arrow writes besides."""
    good: dict[str, Any] = {
        "obs_0": [float(i) for i in range(20)],
        "action_0": [0.5] * 20,
        "reward": [1.0] * 20,
    }
    kinds: dict[str, dict[str, Any]] = {
        "null": {"obs_0": pa.array([None] + [1.0] * 19)}, "all null": {"obs_0": pa.nulls(20)}, "text": {"obs_0": ["a"] * 20}, "lists": {"obs_0": [[1.0, 2.0]] * 20},
        "structs": {"obs_0": [{"a": 1.0}] * 20}, "dates": {"obs_0": pa.array([0] * 20, pa.timestamp("us"))}, "decimals": {"obs_0": pa.array([1] * 20, pa.decimal128(20, 2))},
        "dictionary": {"obs_0": pa.array(["1"] * 20).dictionary_encode()}, "binary": {"obs_0": [b"1"] * 20}, "nan": {"obs_0": [float("nan")] * 20}, "flags": {"terminated": [2] * 20},
        "null flags": {"terminated": pa.array([None] * 20, pa.bool_())}, "durations": {"obs_0": pa.array([1] * 20, pa.duration("s"))}, "no rows": {name: pa.array([], pa.float64()) for name in good},
        "huge integers": {"obs_0": pa.array([2**63 - 1] * 20)}, "maps": {"obs_0": pa.array([[("a", 1)]] * 20, pa.map_(pa.string(), pa.int64()))}, "half": {"obs_0": pa.array(np.full(20, np.inf, np.float16))},
        "null episodes": {"episode": pa.array([None] * 20, pa.int32())}, "episodes of lists": {"episode": [[1]] * 20}, "next_obs of nulls": {"next_obs_0": pa.array([None] * 20, pa.float64())},
    }  # fmt: skip
    may = {
        "huge integers",
        "decimals",
        "dictionary",
        "episodes of lists",
        "null episodes",
        "next_obs of nulls",
    }
    for name, change in kinds.items():

        def prepare(place: Place, change: dict[str, Any] = change) -> None:
            parquet.write_table(pa.table({**good, **change}), place.folder / "log.parquet")

        yield command(
            "Parquet and Arrow",
            name,
            "data",
            "inspect",
            "log.parquet",
            prepare=prepare,
            words=("log.parquet",),
            expect="either" if name in may else "refused",
        )
        yield command(
            "Parquet and Arrow",
            f"describe: {name}",
            "data",
            "describe",
            "log.parquet",
            prepare=prepare,
            words=("log.parquet",),
            expect="either",
        )
    whole = io.BytesIO()
    parquet.write_table(pa.table(good), whole)
    content = whole.getvalue()
    for name, text in {
        "head alone": b"PAR1",
        "no foot": content[:-20],
        "two feet": b"PAR1PAR1",
        "a long foot": content[:-8] + b"\xff\xff\xff\x7fPAR1",
        "zeros": b"PAR1" + bytes(500) + b"PAR1",
        "encrypted": b"PARE" + content[4:],
    }.items():
        yield command(
            "Parquet and Arrow",
            name,
            "data",
            "inspect",
            "log.parquet",
            prepare=lambda p, t=text: p.write("log.parquet", t),
            words=("log.parquet",),
        )

    def write_ipc(place: Place) -> None:
        with ipc.new_file(place.folder / "log.arrow", pa.table(good).schema) as sink:
            sink.write_table(pa.table(good))

    yield command(
        "Parquet and Arrow",
        "an Arrow file",
        "data",
        "inspect",
        "log.arrow",
        prepare=write_ipc,
        words=("log.arrow",),
    )
    yield command(
        "Parquet and Arrow",
        "Feather",
        "data",
        "inspect",
        "log.feather",
        prepare=lambda p: feather.write_feather(pa.table(good), p.folder / "log.feather"),
        words=("log.feather",),
    )
    yield command(
        "Parquet and Arrow",
        "Parquet that is named csv",
        "data",
        "describe",
        "log.csv",
        prepare=lambda p: parquet.write_table(pa.table({"a": ["x"] * 20}), p.folder / "log.csv"),
        expect="either",
    )


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (archives, hdf5, columnar):
        yield from make()

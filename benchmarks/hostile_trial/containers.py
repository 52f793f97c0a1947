"""Files of arrays as an attacker would make them: Arrow and Parquet stores, archives, HDF5, safetensors."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from hostile_trial.stores import _BOX, _GOOD
from hostile_trial.trial import Case, Place, command


def _columns(rows: int = 11) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    obs = [list(map(float, row)) for row in rng.normal(size=(rows, 3))]
    action = [[float(value)] for value in rng.uniform(-1, 1, rows)]
    ends = [i == rows - 2 for i in range(rows)]
    return {
        "observations": pa.array(obs, pa.list_(pa.float32(), 3)),
        "actions": pa.array(action, pa.list_(pa.float32(), 1)),
        "rewards": pa.array(rng.normal(size=rows).tolist()),
        "terminations": pa.array(ends),
        "truncations": pa.array([False] * rows),
    }


def _store(
    place: Place, form: str, change: dict[str, Any] | None = None, described: dict[str, Any] | None = None
) -> Path:
    """A store of three episodes; the second one is changed. Its file is returned."""
    data = place.folder / "store" / "data"
    for i in range(3):
        columns = _columns()
        if i == 1 and change:
            columns |= change
        columns = {name: column for name, column in columns.items() if column is not None}
        folder = data / str(i)
        folder.mkdir(parents=True)
        (folder / "metadata.json").write_text(json.dumps({"id": i, "total_steps": 10}))
        table = pa.table(columns)
        if form == "parquet":
            parquet.write_table(table, folder / "data.parquet")
        else:
            with ipc.new_file(folder / "data.arrow", table.schema) as sink:
                sink.write_table(table)
    (data / "metadata.json").write_text(json.dumps({**_GOOD, "data_format": form, **(described or {})}))
    return data / "1" / f"data.{form}"


def _arrow_bytes(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    with ipc.new_file(sink, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_stores() -> Iterator[Case]:
    """Episodes as Arrow or Parquet files."""
    changes: dict[str, dict[str, Any]] = {
        "no rewards": {"rewards": None}, "no observations": {"observations": None}, "rewards of words": {"rewards": pa.array(["x"] * 11)}, "rewards null": {"rewards": pa.nulls(11, pa.float64())}, "one reward null": {"rewards": pa.array([None, *[1.0] * 10])}, "the last reward null": {"rewards": pa.array([*[1.0] * 10, None])}, "rewards NaN": {"rewards": pa.array([float("nan")] * 11)},
        "rewards of lists": {"rewards": pa.array([[1.0]] * 11)}, "rewards of two": {"rewards": pa.array([[1.0, 2.0]] * 11)}, "rewards dates": {"rewards": pa.array([0] * 11, pa.timestamp("us"))}, "flags 2": {"terminations": pa.array([2] * 11)}, "flags null": {"terminations": pa.nulls(11, pa.bool_())}, "flags words": {"terminations": pa.array(["no"] * 11)},
        "observations of four": {"observations": pa.array([[1.0] * 4] * 11, pa.list_(pa.float32(), 4))}, "observations ragged": {"observations": pa.array([[1.0] * (2 + i % 3) for i in range(11)])}, "observations ragged to fit": {"observations": pa.array([[1.0] * (2 if i % 2 else 4) for i in range(10)] + [[1.0] * 3])}, "observations empty": {"observations": pa.array([[]] * 11, pa.list_(pa.float32()))},
        "observations null": {"observations": pa.array([None, *[[1.0] * 3] * 10], pa.list_(pa.float32()))}, "observations with a null": {"observations": pa.array([[None, 1.0, 1.0]] * 11, pa.list_(pa.float32()))}, "observations deep": {"observations": pa.array([[[1.0, 2.0, 3.0]]] * 11)}, "observations structs": {"observations": pa.array([{"a": 1.0}] * 11)}, "observations maps": {"observations": pa.array([[("a", 1.0)]] * 11, pa.map_(pa.string(), pa.float64()))},
        "observations of words": {"observations": pa.array([["a"] * 3] * 11)}, "observations large lists": {"observations": pa.array([[1.0] * 3] * 11, pa.large_list(pa.float32()))}, "observations views": {"observations": pa.array([[1.0] * 3] * 11, pa.list_view(pa.float32()))}, "observations a dictionary": {"observations": pa.array(["a"] * 11).dictionary_encode()}, "observations infinite": {"observations": pa.array([[float("inf")] * 3] * 11)},
        "observations too large": {"observations": pa.array([[1e300] * 3] * 11)}, "actions beyond": {"actions": pa.array([[9.0]] * 11)}, "actions of two": {"actions": pa.array([[1.0, 1.0]] * 11)}, "actions runs": {"actions": pa.RunEndEncodedArray.from_arrays(pa.array([11], pa.int32()), pa.array([1.0]))}, "odd columns": {"infos": pa.array([{"a": 1}] * 11)}, "decimals": {"rewards": pa.array([1] * 11, pa.decimal128(20, 2))}, "durations": {"rewards": pa.array([1] * 11, pa.duration("s"))},
        "unions": {"rewards": pa.UnionArray.from_sparse(pa.array([0] * 11, pa.int8()), [pa.array([1.0] * 11)])}, "binary": {"rewards": pa.array([b"1"] * 11)}, "half": {"rewards": pa.array(np.full(11, np.inf, np.float16))},
    }  # fmt: skip
    good = {
        "rewards of lists",
        "odd columns",
        "observations large lists",
        "observations views",
        "the last reward null",
        "decimals",
        "half",
        "actions beyond",
    }
    for form in ("arrow", "parquet"):
        for name, change in changes.items():

            def prepare(place: Place, form: str = form, change: dict[str, Any] = change) -> None:
                _store(place, form, change)

            if form == "parquet" and name in ("observations views", "actions runs", "unions"):
                continue  # Parquet has none of these
            yield command(
                f"Minari's {form} stores", name, "data", "inspect", "store",
                prepare=prepare, words=("store",), expect="either" if name in good else "refused",
            )  # fmt: skip
        damage: dict[str, Callable[[Path], object]] = {
            "empty": lambda p: p.write_bytes(b""), "half": lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2]), "zeros": lambda p: p.write_bytes(bytes(p.stat().st_size)), "head alone": lambda p: p.write_bytes(b"ARROW1\0\0"), "head and foot": lambda p: p.write_bytes(b"ARROW1\0\0" + b"\xff\xff\xff\x7fARROW1"), "foot of minus": lambda p: p.write_bytes(p.read_bytes()[:-10] + b"\xff\xff\xff\xffARROW1"),
            "a pipe": lambda p: (p.unlink(), os.mkfifo(p)), "a device": lambda p: (p.unlink(), p.symlink_to("/dev/zero")), "a loop": lambda p: (p.unlink(), p.symlink_to(p.name)), "a folder": lambda p: (p.unlink(), p.mkdir()), "gone": Path.unlink, "two files": lambda p: p.with_name("more" + p.suffix).write_bytes(p.read_bytes()), "a text": lambda p: p.with_name("readme.txt").write_text("x"),
            "huge": lambda p: os.truncate(p, 2**36), "the other kind": lambda p: p.write_bytes(b"PAR1" + bytes(90) + b"PAR1" if p.suffix == ".arrow" else b"ARROW1\0\0" + bytes(90) + b"ARROW1"), "a thousand files": lambda p: [p.with_name(f"x{i}{p.suffix}").write_bytes(p.read_bytes()) for i in range(300)], "no folder": lambda p: (p.unlink(), (p.parent / "metadata.json").unlink(), p.parent.rmdir()),
            "a folder more": lambda p: (p.parent.parent / "3").mkdir(), "a folder of a word": lambda p: (p.parent.parent / "x").mkdir(), "another table": lambda p: p.write_bytes(_arrow_bytes(pa.table({"a": [1]}))), "no rows": lambda p: p.write_bytes(_arrow_bytes(pa.table(_columns()).slice(0, 0))), "one row": lambda p: p.write_bytes(_arrow_bytes(pa.table(_columns()).slice(0, 1))),
            "compressed": lambda p: p.write_bytes(_arrow_bytes(pa.table(_columns()), compression="zstd")), "a bomb": lambda p: p.write_bytes(_arrow_bytes(pa.table({**_columns(2), "rewards": pa.array([0.0] * 2), "infos": pa.array([b"\0" * 900_000_000, b""])}), compression="zstd")), "names twice": lambda p: p.write_bytes(_arrow_bytes(pa.Table.from_arrays([*_columns().values(), _columns()["rewards"]], [*_columns(), "rewards"]))),
            "a streamed file": lambda p: _streamed(p), "extension types": lambda p: _extension(p),
        }  # fmt: skip
        may = {
            "two files",
            "a thousand files",
            "a folder of a word",
            "compressed",
            "a text",
            "a bomb",
            "extension types",
            "a folder more",
            "no rows",
            "one row",
        }
        for name, change in damage.items():

            def spoilt(place: Place, form: str = form, change: Callable[[Path], object] = change) -> None:
                change(_store(place, form))

            yield command(
                f"Minari's {form} stores", f"file: {name}", "data", "inspect", "store",
                prepare=spoilt, words=("store",), expect="either" if name in may else "refused",
            )  # fmt: skip
        rng = np.random.default_rng(1)
        for turn in range(40):
            spots = rng.integers(0, 2**31, 3), rng.integers(0, 256, 3)

            def flipped(place: Place, form: str = form, spots: Any = spots) -> None:
                path = _store(place, form)
                content = bytearray(path.read_bytes())
                for spot, value in zip(*spots, strict=True):
                    content[spot % len(content)] = value
                path.write_bytes(content)

            yield command(
                f"Minari's {form} stores", f"changed bytes {turn}", "data", "inspect", "store",
                prepare=flipped, words=("store",), expect="either",
            )  # fmt: skip
    described: dict[str, dict[str, Any]] = {
        "0 episodes": {"total_episodes": 0}, "2 episodes": {"total_episodes": 2}, "true episodes": {"total_episodes": True}, "episodes of words": {"total_episodes": "3"}, "a billion episodes": {"total_episodes": 10**9}, "parquet for arrow": {"data_format": "parquet"}, "a dictionary space": {"observation_space": json.dumps({"type": "Dict", "subspaces": {"a": _BOX}})},
        "no space": {"observation_space": None}, "a space of no numbers": {"observation_space": json.dumps({**_BOX, "shape": [0], "low": [], "high": []})}, "a space of two axes": {"observation_space": json.dumps({**_BOX, "shape": [1, 3], "low": [[-9.0] * 3], "high": [[9.0] * 3]})}, "bounds the wrong way": {"action_space": json.dumps({**_BOX, "shape": [1], "low": [1.0], "high": [-1.0]})},
        "bounds too large": {"action_space": json.dumps({**_BOX, "shape": [1], "low": [-1e300], "high": [1e300]})}, "bounds of words": {"action_space": json.dumps({**_BOX, "shape": [1], "low": ["a"], "high": [1.0]})}, "an id of a path": {"dataset_id": "../../etc"}, "an id of escapes": {"dataset_id": "\x1b[2J"}, "env of code": {"env_spec": json.dumps({"id": "os:system", "entry_point": "os:system"})},
    }  # fmt: skip
    may = {"an id of a path", "an id of escapes", "env of code", "a space of two axes"}
    for name, content in described.items():
        yield command(
            "Minari's arrow stores", f"described: {name}", "data", "inspect", "store",
            prepare=lambda p, c=content: _store(p, "arrow", described=c), words=("store",), expect="either" if name in may else "refused",
        )  # fmt: skip


def _streamed(path: Path) -> None:
    table = pa.table(_columns())
    with ipc.new_stream(path, table.schema) as sink:
        sink.write_table(table)


def _extension(path: Path) -> None:
    field = pa.field(
        "rewards",
        pa.float64(),
        metadata={
            b"ARROW:extension:name": b"nobody.knows",
            b"ARROW:extension:metadata": b"\x80\x04cos\nsystem\n.",
        },
    )
    columns = _columns()
    schema = pa.schema(
        [field if name == "rewards" else pa.field(name, column.type) for name, column in columns.items()]
    )
    path.write_bytes(_arrow_bytes(pa.Table.from_arrays(list(columns.values()), schema=schema)))


def _npy(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def _members() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    arrays = {"obs": rng.normal(size=(30, 2)), "action": rng.uniform(-1, 1, (30, 1)), "reward": np.zeros(30)}
    return {f"{name}.npy": _npy(array) for name, array in arrays.items()}


def _archive(
    change: Callable[[dict[str, bytes]], object] = lambda m: None,
    after: Callable[[bytearray], object] = lambda b: None,
    **options: Any,
) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        members = _members()
        change(members)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", **options) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        content = bytearray(stream.getvalue())
        after(content)
        place.write("log.npz", bytes(content))

    return prepare


def _put(old: bytes, new: bytes) -> Callable[[bytearray], object]:
    def after(content: bytearray) -> None:
        content[:] = content.replace(old, new, 1)

    return after


def archives() -> Iterator[Case]:
    """Zip archives and the arrays in them."""

    def version(major: int, minor: int) -> Callable[[dict[str, bytes]], object]:
        return lambda m: m.update({"obs.npy": b"\x93NUMPY" + bytes([major, minor]) + m["obs.npy"][8:]})

    def header(text: str) -> Callable[[dict[str, bytes]], object]:
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")
        return lambda m: m.update({"obs.npy": head + bytes(480)})

    made: dict[str, Callable[[Place], None]] = {
        "version 4": _archive(version(4, 0)), "version 0": _archive(version(0, 0)), "version 3 of version 1": _archive(version(3, 0)), "header that is longer": _archive(lambda m: m.update({"obs.npy": m["obs.npy"][:8] + b"\xff\xff" + m["obs.npy"][10:]})), "header of nothing": _archive(lambda m: m.update({"obs.npy": m["obs.npy"][:8] + b"\0\0"})), "header of a list": _archive(header("[1,2]\n")),
        "header of a set": _archive(header("{'descr', 'shape'}\n")), "header with more": _archive(header("{'descr': '<f8', 'fortran_order': False, 'shape': (30, 2), 'more': 1}\n")), "shape of truth": _archive(header("{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2)}\n")), "shape of words": _archive(header("{'descr': '<f8', 'fortran_order': False, 'shape': ('30', 2)}\n")), "shape of 40 axes": _archive(header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 70 + ")}\n")),
        "shape that overflows": _archive(header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}\n")), "descr of objects": _archive(header("{'descr': '|O', 'fortran_order': False, 'shape': (30, 2)}\n")), "descr of nothing": _archive(header("{'descr': '', 'fortran_order': False, 'shape': (30, 2)}\n")), "descr deep": _archive(header("{'descr': [('a', " * 200 + "'<f8'" + ")]" * 200 + ", 'fortran_order': False, 'shape': (30, 2)}\n")),
        "descr of zero width": _archive(header("{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000, 2)}\n")), "descr of subarrays": _archive(header("{'descr': ('<f8', (1000000,)), 'fortran_order': False, 'shape': (1000,)}\n")), "fortran a word": _archive(header("{'descr': '<f8', 'fortran_order': 'x', 'shape': (30, 2)}\n")), "a short array": _archive(lambda m: m.update({"obs.npy": m["obs.npy"][:-8]})), "a long array": _archive(lambda m: m.update({"obs.npy": m["obs.npy"] + bytes(800)})),
        "no .npy": _archive(lambda m: m.update({"obs": m.pop("obs.npy")})), "names twice": _archive(lambda m: m.update({"OBS.npy": m["obs.npy"]})), "a name of escapes": _archive(lambda m: m.update({"\x1b[2J.npy": m["obs.npy"]})), "a name of 60,000": _archive(lambda m: m.update({"x" * 60000 + ".npy": b""})), "a member obs/": _archive(lambda m: m.update({"obs/x.npy": b""})), "30,000 members": _archive(lambda m: m.update({f"{i}.npy": b"" for i in range(30000)})),
        "encrypted": _archive(after=_put(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00")), "another method": _archive(after=lambda b: b.__setitem__(slice(8, 10), b"\x63\x00")), "bzip2": _archive(compression=zipfile.ZIP_BZIP2), "lzma": _archive(compression=zipfile.ZIP_LZMA), "a checksum that lies": _archive(after=lambda b: b.__setitem__(slice(14, 18), b"\1\2\3\4")), "a size that lies": _archive(after=lambda b: b.__setitem__(slice(22, 26), b"\xff\xff\xff\x7f")),
        "no directory": _archive(after=lambda b: b.__delitem__(slice(-60, None))), "a comment": _archive(after=lambda b: b.extend(b"x" * 60000)), "before the archive": _archive(after=lambda b: b.__setitem__(slice(0, 0), b"#!/bin/sh\n" * 9)), "two archives": _archive(after=lambda b: b.extend(bytes(b))), "a bomb of names": _archive(lambda m: m.update({"reward.npy": _npy(np.zeros(40_000_000))}), compression=zipfile.ZIP_DEFLATED), "empty archive": lambda p: p.write("log.npz", b"PK\x05\x06" + bytes(18)) and None,
        "gzip": lambda p: p.write("log.npz", b"\x1f\x8b" + bytes(99)) and None, "an .npy": lambda p: p.write("log.npz", _npy(np.zeros((30, 2)))) and None, "an .npy of objects": lambda p: p.write("log.npz", _npy(np.array([{}], object), allow_pickle=True)) and None, "safetensors": lambda p: p.write("log.npz", struct.pack("<Q", 2) + b"{}") and None, "HDF5": lambda p: p.write("log.npz", (p.material / "d4rl.hdf5").read_bytes()) and None, "a table": lambda p: p.write("log.npz", (p.material / "usual.csv").read_bytes()) and None,
    }  # fmt: skip
    may = {"a checksum that lies", "a size that lies", "no .npy", "names twice", "a name of escapes", "a name of 60,000", "a member obs/", "30,000 members", "bzip2", "lzma", "a comment", "before the archive", "two archives", "HDF5", "a table", "header with more", "a long array", "shape of truth", "version 3 of version 1", "encrypted", "another method"}  # fmt: skip
    for name, prepare in made.items():
        yield command("archives", name, "data", "inspect", "log.npz", prepare=prepare, words=("log.npz",), expect="either" if name in may else "refused")  # fmt: skip
    for name in list(made)[::2]:
        yield command("archives", f"a policy: {name}", "data", "collect", "--task", "pendulum", "--steps", 10, "--processes", 1, "--policy", "log.npz", "--out", "x.npz", prepare=made[name], words=("log.npz",))  # fmt: skip
    rng = np.random.default_rng(2)
    for turn in range(40):
        spots = rng.integers(0, 2**31, 2), rng.integers(0, 256, 2)

        def flipped(content: bytearray, spots: Any = spots) -> None:
            for spot, value in zip(*spots, strict=True):
                content[spot % len(content)] = value

        yield command("archives", f"changed bytes {turn}", "data", "inspect", "log.npz", prepare=_archive(after=flipped), words=("log.npz",), expect="either")  # fmt: skip


def trees() -> Iterator[Case]:
    """HDF5 files of an attacker's."""

    def edited(edit: Callable[[Any], object], name: str = "d4rl.hdf5") -> Callable[[Place], None]:
        def prepare(place: Place) -> None:
            with h5py.File(place.copy(name, "log.hdf5"), "a") as file:
                edit(file)

        return prepare

    def put(name: str, *arguments: Any, **options: Any) -> Callable[[Any], object]:
        def edit(file: Any) -> None:
            if name in file:
                del file[name]
            file.create_dataset(name, *arguments, **options)

        return edit

    def virtual(file: Any) -> None:
        layout = h5py.VirtualLayout((60,), "f4")
        layout[:] = h5py.VirtualSource("/etc/passwd", "x", (60,))
        del file["rewards"]
        file.create_virtual_dataset("rewards", layout)

    changes: dict[str, Callable[[Any], object]] = {
        "rewards of 0-d": put("rewards", data=1.0), "rewards of 32 axes": put("rewards", data=np.zeros((1,) * 32)), "rewards of (60, 1)": put("rewards", data=np.zeros((60, 1))), "rewards of (1, 60)": put("rewards", data=np.zeros((1, 60))), "rewards of nothing": put("rewards", (0,), "f4"), "rewards of 2^40": put("rewards", (2**40,), "f8", chunks=(1024,)), "rewards of fills": put("rewards", (60,), "f4", fillvalue=np.nan),
        "rewards of truth": put("rewards", data=np.ones(60, bool)), "rewards of longdouble": put("rewards", data=np.ones(60, np.longdouble)), "rewards of complex": put("rewards", data=np.ones(60, complex)), "rewards of dates": put("rewards", data=np.zeros(60, "i8")), "rewards of texts": put("rewards", data=["1.0"] * 60), "rewards of references": lambda f: (f.__delitem__("rewards"), f.create_dataset("rewards", (60,), h5py.ref_dtype)),
        "rewards of arrays": put("rewards", (60,), np.dtype(("f4", (2,)))), "external": put("rewards", (60,), "f4", external=[("/etc/passwd", 0, 240)]), "external pipe": put("rewards", (60,), "f4", external=[("pipe", 0, 240)]), "virtual": virtual, "compressed": put("rewards", data=np.zeros(60), compression="gzip"), "a filter that is none": put("rewards", data=np.zeros(60), chunks=(60,), fletcher32=True, shuffle=True), "scale and offset": put("rewards", data=np.zeros(60), chunks=(60,), scaleoffset=2),
        "a bomb": put("rewards", (500_000_000,), "f8", chunks=(1_000_000,), compression="gzip"), "timeouts of 59": put("timeouts", data=np.zeros(59, bool)), "timeouts of halves": put("timeouts", data=np.full(60, 0.5)), "timeouts of NaN": put("timeouts", data=np.full(60, np.nan)), "terminals of -1": put("terminals", data=np.full(60, -1)), "terminals of everything": put("terminals", data=np.ones(60, bool)), "no observations": lambda f: f.__delitem__("observations"),
        "a soft link up": lambda f: (f.__delitem__("rewards"), f.__setitem__("rewards", h5py.SoftLink("/actions"))), "a hard link": lambda f: (f.__delitem__("rewards"), f.__setitem__("rewards", f["timeouts"])), "a link to a group": lambda f: (f.__delitem__("rewards"), f.__setitem__("rewards", f["/"])), "a named type": lambda f: (f.__delitem__("rewards"), f.__setitem__("rewards", np.dtype("f4"))), "a soft link chain": _chain, "attributes": lambda f: f["rewards"].attrs.__setitem__("x", "y" * 60000),
        "a name of escapes": lambda f: f.__setitem__("\x1b[2J", 1), "a name that is not UTF-8": lambda f: f.__setitem__(b"\xff\xfe", 1), "next_observations of 59": put("next_observations", data=np.zeros((59, 3))), "next_observations of 4": put("next_observations", data=np.zeros((60, 4))), "next_observations NaN": put("next_observations", data=np.full((60, 3), np.nan)), "metadata a dataset": put("metadata", data=1), "infos a dataset": put("infos", data=1), "30,000 groups": lambda f: [f.create_group(f"x{i}") for i in range(30000)],
    }  # fmt: skip
    may = {"compressed", "a filter that is none", "scale and offset", "rewards of truth", "rewards of longdouble", "rewards of dates", "attributes", "a name of escapes", "a name that is not UTF-8", "30,000 groups", "infos a dataset", "metadata a dataset", "a hard link", "terminals of everything", "rewards of (60, 1)", "a soft link up", "next_observations NaN", "rewards of texts"}  # fmt: skip
    for name, edit in changes.items():
        prepare = edited(edit)

        def piped(place: Place, prepare: Callable[[Place], None] = prepare) -> None:
            prepare(place)
            os.mkfifo(place.folder / "pipe")

        yield command("HDF5 trees", name, "data", "convert", "log.hdf5", "out.npz", prepare=piped, words=("log.hdf5",), expect="either" if name in may else "refused")  # fmt: skip
    rng = np.random.default_rng(3)
    for turn in range(60):
        spots = rng.integers(0, 2**31, 3), rng.integers(0, 256, 3)

        def flipped(place: Place, spots: Any = spots, turn: int = turn) -> None:
            path = place.copy("d4rl.hdf5" if turn % 2 else "log.hdf5", "log.hdf5")
            content = bytearray(path.read_bytes())
            for spot, value in zip(*spots, strict=True):
                content[spot % min(len(content), 6000)] = value
            path.write_bytes(content)

        yield command("HDF5 trees", f"changed bytes {turn}", "data", "inspect", "log.hdf5", prepare=flipped, words=("log.hdf5",), expect="either")  # fmt: skip


def _chain(file: Any) -> None:
    del file["rewards"]
    for i in range(300):
        file[f"r{i}"] = h5py.SoftLink(f"/r{i + 1}")
    file["rewards"] = h5py.SoftLink("/r0")


def weights() -> Iterator[Case]:
    """Weights of policies and checkpoints of another making; their checksums are not those of a writer."""
    head = lambda text: struct.pack("<Q", len(text)) + text  # noqa: E731
    contents = {
        "no header": b"", "a header of nothing": struct.pack("<Q", 0), "a header too long": struct.pack("<Q", 2**63) + b"{}", "a header of 100 MB": struct.pack("<Q", 10**8) + b"{}", "no JSON": head(b"{"), "a list": head(b"[]"), "offsets backwards": head(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}') + bytes(4), "offsets beyond": head(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400]}}') + bytes(4),
        "a shape that lies": head(b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}') + bytes(4), "a shape that overflows": head(b'{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}') + bytes(4), "an unknown type": head(b'{"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}}') + bytes(4), "names twice": head(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}') + bytes(4), "deep": head(b'{"a":' * 2000 + b"1" + b"}" * 2000),
    }  # fmt: skip
    lines = {"evaluate": ("evaluate", "run", "--episodes", "1"), "export": ("export", "run", "--to", "npz"), "trust": ("trust", "run", "{m}/log.npz")}  # fmt: skip
    for number, (name, content) in enumerate(contents.items()):

        def prepare(place: Place, content: bytes = content) -> None:
            (place.copy("mopo", "run") / "policy/seed-0/policy.safetensors").write_bytes(content)

        line = list(lines)[number % 3]
        yield command(
            "weights", f"{line}: {name}", *lines[line], prepare=prepare, words=("policy.safetensors",)
        )

        def checkpoint(place: Place, content: bytes = content) -> None:
            run = place.copy("mopo", "run")
            for path in run.rglob("step-*.safetensors"):
                path.write_bytes(content)

        yield command(
            "weights", f"resume: {name}", "train", "--resume", "run", prepare=checkpoint, expect="either"
        )


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (arrow_stores, archives, trees, weights):
        yield from make()

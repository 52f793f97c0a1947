"""Files at random: whatever comes, it is read or refused in one sentence; nothing escapes, nothing hangs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm import UserError
from mcetm.data import read_minari
from mcetm.data.files import read_file
from tests.conftest import random_fields
from tests.hostile import files
from tests.hostile.outcomes import no_hang
from tests.hostile.test_minari_stores import DESCRIBED, store

FEW = settings(max_examples=40, deadline=None, derandomize=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MAKERS: dict[str, Callable[[Path], Path]] = {
    "d4rl": files.d4rl,
    "hdf5": files.ours,
    "compressed": lambda f: files.replaced(f, "rewards", data=random_fields()["reward"], compression="gzip"),
    "npz": files.npz,
    "npz of ours": lambda f: files.ours(f, ".npz"),
    "csv": files.csv,
    "parquet": files.parquet,
}


@cache
def good(kind: str) -> tuple[str, bytes]:
    """Name and bytes of a good file."""
    with tempfile.TemporaryDirectory() as folder:
        path = MAKERS[kind](Path(folder))
        return path.name, path.read_bytes()


def read_or_refuse(path: Path, read: Callable[[Path], Any] = read_file) -> None:
    """Nothing but transitions or one sentence may come of a file."""
    with no_hang():
        try:
            transitions = read(path)
        except UserError as error:
            sentence = str(error)
            assert sentence.endswith((".", "?")) or "\n  " in sentence
            assert len(sentence) < 3000
        else:
            assert np.isfinite(transitions.obs).all()
            assert len(transitions) >= 10


def damaged(content: bytes, data: st.DataObject) -> bytes:
    """Bytes changed, cut out, doubled or put in."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6), label="changes")):
        at = data.draw(st.integers(0, max(0, len(changed) - 1)), label="at")
        what = data.draw(st.sampled_from(["flip", "cut", "drop", "double", "insert"]), label="what")
        size = data.draw(st.integers(1, 64), label="size")
        if what == "flip":
            changed[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif what == "cut":
            del changed[max(1, at) :]
        elif what == "drop":
            del changed[at : at + size]
        elif what == "double":
            changed[at:at] = changed[at : at + size]
        else:
            changed[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    return bytes(changed)


@pytest.mark.parametrize("kind", MAKERS)
@given(data=st.data())
@FEW
def test_any_damage_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    name, content = good(kind)
    with tempfile.TemporaryDirectory() as folder:
        read_or_refuse(files.raw(Path(folder), name, damaged(content, data)))


@pytest.mark.parametrize("suffix", [".csv", ".hdf5", ".npz", ".parquet"])
@given(
    content=st.binary(max_size=200),
    magic=st.sampled_from([b"", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"PAR1"]),
)
@settings(FEW, max_examples=30)
def test_noise_is_refused(suffix: str, content: bytes, magic: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = files.raw(Path(folder), f"log{suffix}", magic + content)
        with no_hang(), pytest.raises(UserError):
            read_file(path)


@given(text=st.text(st.sampled_from('obs_actinrewd0123.,-+eEnaif"\n\r\t ;#'), max_size=300))
@FEW
def test_any_table_of_text_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read_or_refuse(files.raw(Path(folder), "log.csv", f"obs_0,reward\n{text}".encode()))


@given(
    cells=st.lists(
        st.lists(st.sampled_from(["1", "-2.5e3", "", "nan", "x", '"3"', "1,2"]), min_size=1, max_size=3),
        min_size=12,
        max_size=20,
    )
)
@FEW
def test_rows_of_another_width_are_never_read(cells: list[list[str]]) -> None:
    text = "obs_0,obs_1\n" + "".join(",".join(row) + "\n" for row in cells)
    with tempfile.TemporaryDirectory() as folder:
        path = files.raw(Path(folder), "log.csv", text.encode())
        try:
            transitions = read_file(path)
        except UserError:
            return
        rows = [",".join(row).replace('"', "").split(",") for row in cells]
        assert all(len(row) == 2 for row in rows)
        expected = np.array(rows, np.float32)
        np.testing.assert_array_equal(transitions.obs, expected[: len(transitions)])


@given(header=JSON)
@FEW
def test_any_header_is_refused(header: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = files.with_header(Path(folder), json.dumps(header))
        with pytest.raises(UserError, match="header"):
            read_file(path)


@given(
    changes=st.dictionaries(st.sampled_from(["task", "notes", "provenance", "dropped", "action_low"]), JSON)
)
@FEW
def test_a_header_with_other_values_is_read_or_refused(changes: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        header = {**files.header_of(files.ours(Path(folder))), **changes}
        read_or_refuse(files.with_header(Path(folder), json.dumps(header)))


SHAPES = st.lists(st.integers(0, 25), max_size=3).map(tuple)
KINDS = st.sampled_from(["f4", "f8", "f2", "i1", "u8", "?", "S3", "c8", "V4", ">f4"])


@given(
    arrays=st.dictionaries(st.sampled_from([*random_fields()]), st.tuples(SHAPES, KINDS)), kind=st.booleans()
)
@FEW
def test_arrays_of_any_shape_and_type_are_read_or_refused(
    arrays: dict[str, tuple[tuple[int, ...], str]], kind: bool
) -> None:
    made = {name: np.ones(shape, dtype) for name, (shape, dtype) in arrays.items() if dtype != "V4"}
    made |= {name: np.zeros(shape, dtype) for name, (shape, dtype) in arrays.items() if dtype == "V4"}
    with tempfile.TemporaryDirectory() as folder:
        read_or_refuse((files.d4rl if kind else files.npz)(Path(folder), **made))


@given(
    described=JSON
    | st.dictionaries(st.sampled_from([*DESCRIBED]), JSON).map(lambda changes: {**DESCRIBED, **changes})
)
@FEW
def test_any_description_of_a_store_is_read_or_refused(described: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = store(Path(folder))
        (path / "data" / "metadata.json").write_text(json.dumps(described))
        read_or_refuse(path, lambda found: read_minari(str(found)))


@given(data=st.data())
@FEW
def test_any_damage_to_a_store_is_read_or_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = store(Path(folder))
        part = path / "data" / data.draw(st.sampled_from(["metadata.json", "main_data.hdf5"]))
        part.write_bytes(damaged(part.read_bytes(), data))
        read_or_refuse(path, lambda found: read_minari(str(found)))


@given(names=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True))
@settings(FEW, max_examples=30)
def test_other_arrays_change_nothing(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = files.ours(Path(folder))
        with h5py.File(path, "a") as file:
            for name in names:
                if "\0" not in name and name.isprintable() and name not in (".", "/"):
                    file.require_group("more").create_dataset(name.replace("/", "-"), data=np.zeros(3))
        assert read_file(path).checksum == files.good_log().checksum

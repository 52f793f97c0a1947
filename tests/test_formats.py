import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm import UserError
from mcetm.data import Transitions, read_file
from tests.conftest import random_fields, write_hdf5


class Bomb:
    """Would leave a trace if it were ever unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.trace,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("suffix", [".pkl", ".hdf5", ".npz", ".csv", ".dat"])
def test_a_pickle_is_refused_and_never_executed(tmp_path: Path, protocol: int, suffix: str) -> None:
    path, trace = tmp_path / f"log{suffix}", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Bomb(trace), protocol))
    with pytest.raises(UserError):
        read_file(path)
    assert not trace.exists()


def test_a_pickle_inside_an_npz_is_refused_and_never_executed(tmp_path: Path) -> None:
    path, trace = tmp_path / "log.npz", tmp_path / "trace"
    objects = np.empty(1, object)
    objects[0] = Bomb(trace)
    np.savez(path, obs=objects)
    with pytest.raises(UserError, match="holds Python objects"):
        read_file(path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"0" * 100, "is of no kind this reads"),
        ("a.hdf5", b"nonsense", "is not an HDF5 file"),
        ("a.csv", b"", "is empty"),
        ("a.pt", b"anything", "is a pickle"),
        ("a.json", b"{}", "is of no kind this reads"),
    ],
)
def test_other_kinds_are_refused_by_name(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        read_file(tmp_path / name)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        read_file(tmp_path / "none.hdf5")
    with pytest.raises(UserError, match="Cannot read"):
        read_file(tmp_path)


def test_a_zip_that_is_no_npz(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        archive.writestr("data.pkl", b"\x80\x04N.")
    with pytest.raises(UserError, match=r"is a zip archive but not an \.npz"):
        read_file(tmp_path / "log.npz")


def test_content_decides_not_the_suffix(tmp_path: Path, log: Transitions) -> None:
    write_hdf5(tmp_path / "log.hdf5", random_fields()).rename(tmp_path / "log.npz")
    assert read_file(tmp_path / "log.npz").checksum == log.checksum


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
@given(data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_damage_is_read_or_refused_in_one_sentence(
    suffix: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("damage") / f"log{suffix}"
    Transitions.from_arrays(**random_fields()).save(path)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), label="length")]
    else:
        for _ in range(data.draw(st.integers(1, 8), label="flips")):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    sentence = str(path)
    try:
        read_file(path)
    except UserError as error:
        sentence = str(error)
    assert str(path) in sentence
    assert len(sentence) < 1000

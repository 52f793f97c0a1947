"""Tell file formats apart by their content, and open them without ever executing anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mcetm.errors import UserError

if TYPE_CHECKING:
    import h5py

Kind = Literal["hdf5", "npz", "parquet", "csv"]
READABLE = "HDF5, .npz, CSV and Parquet"
# What h5py raises for truncation, broken checksums, failed decompression and impossible types.
_HDF5_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, MemoryError)
_MOST_INFLATION = 2000  # deflate reaches about 1000
_PICKLE_SUFFIXES = {".pkl", ".pickle", ".p", ".pk", ".joblib", ".pt", ".pth"}
_TEXT_SUFFIXES = {".csv": ",", ".tsv": "\t", ".txt": ","}


def kind_of(path: Path) -> Kind:
    """What a file holds, judged by its first bytes; what we do not read is refused by name."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.") from None
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from None
    if not head:
        raise UserError(f"{path} is empty.")
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    if head.startswith(b"PAR1"):
        return "parquet"
    suffix = path.suffix.lower()
    looks_pickled = len(head) > 1 and head[0] == 0x80 and head[1] <= 5
    if looks_pickled or suffix in _PICKLE_SUFFIXES:
        raise UserError(
            f"{path} is a pickle, which can run code when it is opened, so it is refused; "
            f"save the arrays as one of {READABLE} instead."
        )
    if head.startswith(b"PK"):
        return "npz"
    if suffix in (".hdf5", ".h5"):
        raise UserError(f"{path} is not an HDF5 file, or its beginning is damaged.")
    if suffix in _TEXT_SUFFIXES and b"\x00" not in head:
        return "csv"
    raise UserError(f"{path} is of no kind this reads ({READABLE}).")


def delimiter_of(path: Path) -> str:
    """What separates the cells of a text table: a tab for .tsv, a comma otherwise."""
    return _TEXT_SUFFIXES.get(Path(path).suffix.lower(), ",")


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file for reading; damage found on opening or later while reading is the user's to hear."""
    import h5py

    if not Path(path).is_file():
        raise UserError(f"There is no file {path}.")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except _HDF5_DAMAGE as error:
        raise UserError(f"{path} is truncated or corrupt: {first_clause(error)}.") from None


def hdf5_array(file: h5py.File, name: str) -> Any:
    """The array (or scalar) of this name in an open HDF5 file; None where there is none."""
    # A link that exists but leads to nothing readable is damage, not absence.
    if file.get(name, getlink=True) is None:
        return None
    item: Any = file[name]
    if not hasattr(item, "nbytes"):
        raise UserError(f"{file.filename} cannot be used: '{name}' is not an array.")
    # A damaged shape can ask for more memory than any machine has.
    if item.nbytes > _MOST_INFLATION * Path(file.filename).stat().st_size:
        raise UserError(f"{file.filename} is truncated or corrupt: '{name}' has the shape {item.shape}.")
    return item[()]


def first_clause(error: BaseException) -> str:
    """What went wrong, short enough for a sentence: libraries may quote the damaged bytes at length."""
    text = " ".join(str(error.args[-1] if error.args else error).split()).rstrip(". ")
    return f"{text[:160]} …" if len(text) > 160 else text or type(error).__name__


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an `.npz`; object arrays (pickles inside) are refused, never executed."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            stray = [n for n in archive.zip.namelist() if not n.endswith(".npy")] if archive.zip else []
            if stray:
                raise UserError(f"{path} is a zip archive but not an .npz: it holds '{stray[0]}'.")
            return {name: archive[name] for name in archive.files}
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib, NumPy and Python's own parser each have their own
        if "allow_pickle" in str(error):
            raise UserError(
                f"{path} holds Python objects, which can run code when they are opened, so it is refused; "
                "save plain numeric arrays."
            ) from None
        raise UserError(f"{path} is truncated or corrupt: {first_clause(error)}.") from None

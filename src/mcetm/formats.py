"""Tell file formats apart by their content, and open them without ever executing anything."""

from __future__ import annotations

import contextlib
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mcetm.console import one_line
from mcetm.errors import UserError
from mcetm.files import check_input
from mcetm.memory import free_memory, is_shortage

if TYPE_CHECKING:
    import h5py

Kind = Literal["hdf5", "npz", "parquet", "csv"]
READABLE = "HDF5, .npz, CSV and Parquet"
# What h5py raises for truncation, broken checksums, failed decompression and impossible types.
_HDF5_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError)
_MOST_INFLATION = 200
"""Logs shrink a few-fold when they are compressed; a file that grows more was made to fill the memory."""
_ALWAYS_ALLOWED = 64 << 20
_OWN_LINKS = (0, 1)  # HDF5's hard and soft links; all others lead out of the file
_PICKLE_SUFFIXES = {".pkl", ".pickle", ".p", ".pk", ".joblib", ".pt", ".pth"}
_SPREADSHEETS = {".xlsx", ".xlsm", ".xls", ".ods"}
_TEXT_SUFFIXES = {".csv": ",", ".tsv": "\t", ".txt": ","}


def kind_of(path: Path) -> Kind:
    """What a file holds, judged by its first bytes; what we do not read is refused by name."""
    path = Path(path)
    check_input(path)
    try:
        with path.open("rb") as file:
            head = file.read(512)
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
    if suffix in _SPREADSHEETS:
        raise UserError(f"{path} is a spreadsheet; save the sheet as CSV.")
    if head.startswith(b"PK"):
        return "npz"
    if suffix in (".hdf5", ".h5"):
        raise UserError(f"{path} is not an HDF5 file, or its beginning is damaged.")
    # Excel's "Unicode text" begins with a mark of its own and has a NUL in every other byte.
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) and not head[2:].startswith(b"\x00\x00")
    if suffix in _TEXT_SUFFIXES and (wide or b"\x00" not in head):
        return "csv"
    raise UserError(f"{path} is of no kind this reads ({READABLE}).")


def delimiter_of(path: Path) -> str:
    """What separates the cells of a text table: a tab for .tsv, a comma otherwise."""
    return _TEXT_SUFFIXES.get(Path(path).suffix.lower(), ",")


def check_size(path: Path, declared: Mapping[str, int]) -> None:
    """Refuse what the file cannot hold, or the memory not take, before any of it is read.

    `declared` says how many bytes each array will take.
    """
    total, size = sum(declared.values()), path.stat().st_size
    if total > _ALWAYS_ALLOWED + _MOST_INFLATION * size:
        name = max(declared, key=lambda name: declared[name])
        raise UserError(
            f"{path} is damaged, or made to fill the memory: its {size:,} bytes claim to hold "
            f"{declared[name]:,} of '{one_line(name)}'; if that is right, save it without compression."
        )
    free = free_memory()
    if free is not None and total > free:
        raise UserError(
            f"There is not enough memory to read {path}: it takes {total:,} bytes, and {free:,} are free."
        )


def _in_memory(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Bytes of an array as it lies in the file or as single precision, whichever is more."""
    return math.prod(shape) * max(dtype.itemsize, 4)


def unreadable(path: Path, error: BaseException) -> UserError:
    """What to say when a library gives up on a file: that memory is short, or that the file is damaged."""
    if is_shortage(error) or "memory allocation failed" in str(error).lower():
        return UserError(f"There is not enough memory to read {path}.")
    return UserError(f"{path} is truncated or corrupt: {first_clause(error)}.")


def first_clause(error: BaseException) -> str:
    """What went wrong, short enough for a sentence: libraries may quote the damaged bytes at length."""
    text = " ".join(str(error.args[-1] if error.args else error).split()).rstrip(". ")
    return one_line(text, 160) or type(error).__name__


@contextlib.contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file for reading; damage found on opening or later while reading is the user's to hear.

    A link into another file is refused before it is followed: it could lead to anything on this machine.
    """
    import h5py

    check_input(path)
    try:
        with h5py.File(path, "r") as file:
            _check_links(file)
            yield file
    except (*_HDF5_DAMAGE, MemoryError) as error:
        raise unreadable(path, error) from None


def _check_links(file: h5py.File) -> None:
    def foreign(name: bytes, link: Any) -> str | None:
        return None if link.type in _OWN_LINKS else name.decode(errors="replace")

    name = file.id.links.visit(foreign, info=True)
    if name is not None:
        raise UserError(
            f"{file.filename} cannot be used: '{one_line(name)}' is a link into another file, and such links "
            "are not followed; copy the data into one file."
        )


def hdf5_array(file: h5py.File, name: str) -> Any:
    """The array (or scalar) of this name in an open HDF5 file; None where there is none."""
    return hdf5_arrays(file, [name])[name]


def hdf5_arrays(file: h5py.File, names: Iterable[str]) -> dict[str, Any]:
    """The arrays of these names, None for those that are not there; all are looked at before one is read."""
    items = hdf5_datasets(file, names)
    found = {name: item for name, item in items.items() if item is not None}
    check_size(Path(file.filename), {n: _in_memory(item.shape, item.dtype) for n, item in found.items()})
    return {name: None if item is None else item[()] for name, item in items.items()}


def hdf5_datasets(file: h5py.File, names: Iterable[str]) -> dict[str, Any]:
    """The datasets of these names, none of which is read yet; None for those that are not there."""
    return {name: _hdf5_dataset(file, name) for name in names}


def _hdf5_dataset(file: h5py.File, name: str) -> Any:
    """A dataset whose numbers lie in the file itself."""
    # A link that exists but leads to nothing readable is damage, not absence.
    if file.get(name, getlink=True) is None:
        return None
    item: Any = file[name]
    shown = f"{file.filename} cannot be used: '{one_line(name)}'"
    if not hasattr(item, "nbytes"):
        raise UserError(f"{shown} is not an array.")
    if item.is_virtual or item.external:
        raise UserError(
            f"{shown} keeps its numbers in another file (external storage or a virtual dataset), and those "
            "are not followed; copy the data into one file."
        )
    if item.shape is None:
        raise UserError(f"{shown} is empty.")
    # Objects of any size can stand behind each entry of such an array, all of them the same one.
    if item.dtype.hasobject and item.shape:
        raise UserError(f"{shown} holds text or objects of varying length, not numbers.")
    return item


def npz_names(path: Path) -> list[str]:
    """Names of the arrays in an `.npz`."""
    with _open_zip(path) as archive:
        return list(_members(path, archive))


def read_npz(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, np.ndarray]:
    """The wanted arrays of an `.npz`; object arrays (pickles inside) are refused, never executed."""
    path = Path(path)
    with _open_zip(path) as archive:
        members = {name: info for name, info in _members(path, archive).items() if wanted(name)}
        check_size(path, {name: _declared(path, archive, info) for name, info in members.items()})
        arrays = {}
        for name, info in members.items():
            with archive.open(info) as stream:
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
        return arrays


@contextlib.contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    check_input(path)
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib, NumPy and Python's own parser each have their own
        raise unreadable(path, error) from None


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """What a zip holds by the names of its arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        shown = one_line(info.filename)
        if name == info.filename:
            raise UserError(f"{path} is a zip archive but not an .npz: it holds '{shown}'.")
        if name in members:
            raise UserError(f"{path} cannot be used: it holds '{shown}' twice.")
        members[name] = info
    return members


def _declared(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Bytes that an array will take, by its own header, which must agree with the archive's."""
    formats = np.lib.format
    with archive.open(info) as stream:
        try:
            version = formats.read_magic(stream)
            read = formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0
            shape, _, dtype = read(stream)
        except MemoryError:  # from Python's parser, which the header is given to
            raise ValueError(f"the header of '{one_line(info.filename)}' is damaged") from None
        if dtype.hasobject:
            raise UserError(
                f"{path} holds Python objects, which can run code when they are opened, so it is refused; "
                "save plain numeric arrays."
            )
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != info.file_size - stream.tell():
            raise ValueError(f"'{one_line(info.filename)}' does not have the size of its shape {shape}")
    return _in_memory(shape, dtype)

"""D4RL's files by name: found in a folder the user has, else downloaded once and kept.

No checksum is known in advance, as D4RL publishes none. The one of the first complete download is
recorded beside the file, and every later use is checked against it.
"""

from __future__ import annotations

import contextlib
import os
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from mcetm.console import Advance, progress
from mcetm.errors import UserError
from mcetm.files import atomic_write, cache_folder, data_folders, find_file, sha256_of, write_text
from mcetm.tasks.datasets import D4RL_DATASETS

D4RL_URL = "http://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2"
_ATTEMPTS = 4
_TIMEOUT = 30.0
_PAUSE = 0.5
_CHUNK = 1 << 20


def d4rl_file(name: str, *, folder: Path | None = None) -> Path:
    """The file of a D4RL dataset such as `hopper-medium-v2`, downloaded where it is not at hand.

    Looked for in `folder`, in `$MCETM_DATA` and in the cache, each with its sub-folder `d4rl`.
    `$MCETM_D4RL_URL` names a mirror.
    """
    found = find_d4rl(name, folder=folder)
    if found is not None:
        _verify(found)
        return found
    file_name = D4RL_DATASETS[name]
    target = cache_folder() / "d4rl" / file_name
    url = f"{os.environ.get('MCETM_D4RL_URL', D4RL_URL).rstrip('/')}/{file_name}"
    try:
        _download(url, target)
    except (OSError, HTTPException, ValueError) as error:
        with contextlib.suppress(OSError):
            target.parent.rmdir()  # only if it was made for this and is empty
        reason = getattr(error, "reason", None) or error
        raise UserError(
            f"{name} is not at hand and could not be downloaded from {url} ({reason}); "
            f"put the file {file_name} into {target.parent} or into a folder named in MCETM_DATA."
        ) from None
    return target


def find_d4rl(name: str, *, folder: Path | None = None) -> Path | None:
    """The file of a D4RL dataset where it is at hand."""
    if folder is not None and not folder.is_dir():
        raise UserError(f"There is no folder {folder}.")
    places = [*([folder] if folder else []), *data_folders()]
    return find_file("d4rl", [D4RL_DATASETS[name], f"{name}.hdf5"], places)


def _sum_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _verify(path: Path) -> None:
    """Compare with the checksum recorded at the first download, where there is one."""
    if not _sum_file(path).is_file():
        return
    recorded = _sum_file(path).read_text().split()
    if recorded[:1] != [sha256_of(path)]:
        raise UserError(
            f"{path} is not the file that was downloaded first (its checksum differs from the one in "
            f"{_sum_file(path).name}); delete both to download it again."
        )


def _download(url: str, target: Path) -> None:
    """Fetch a file whole or not at all; a transfer that breaks off is continued where it stopped."""
    with atomic_write(target) as partial:
        partial.touch()
        _fetch(url, partial, label=target.name)
        with partial.open("rb") as file:
            magic = file.read(4)
        if magic != b"\x89HDF":
            raise ConnectionError("what came is not an HDF5 file")  # an error page, say
        # First the sum, then the file: a kill in between leaves no file that nothing vouches for.
        write_text(_sum_file(target), f"{sha256_of(partial)}  {target.name}\n")


def _fetch(url: str, partial: Path, *, label: str) -> None:
    """Fill `partial` from `url`, asking again for the rest when a transfer breaks off."""
    version: str | None = None
    with progress(f"downloading {label}", None, unit="bytes") as bar:
        for attempt in range(_ATTEMPTS):
            try:
                with _request(url, partial.stat().st_size, version) as response:
                    version = response.headers.get("ETag") or response.headers.get("Last-Modified")
                    _receive(response, partial, bar)
                return
            except urllib.error.HTTPError as refusal:
                refusal.close()
                raise  # the server has answered; asking again will not change its mind
            except (OSError, HTTPException):
                # What never began (no network, no such host) will not begin a second later.
                if attempt == _ATTEMPTS - 1 or partial.stat().st_size == 0:
                    raise
                time.sleep(_PAUSE * 2**attempt)


def _request(url: str, have: int, version: str | None) -> HTTPResponse:
    """Ask for a file, or for what is missing of it if the server still has the same version."""
    request = urllib.request.Request(url, headers={"User-Agent": "mcetm"})  # noqa: S310
    if have and version:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    return urllib.request.urlopen(request, timeout=_TIMEOUT)  # noqa: S310


def _receive(response: HTTPResponse, partial: Path, bar: Advance) -> None:
    continued = response.status == HTTPStatus.PARTIAL_CONTENT
    have = partial.stat().st_size
    length = response.headers.get("Content-Length")
    total = None if length is None else int(length) + (have if continued else 0)
    bar(0 if continued else -have, total)
    with partial.open("ab" if continued else "wb") as file:
        while chunk := response.read1(_CHUNK):
            file.write(chunk)
            bar(len(chunk), total)
    if total is not None and partial.stat().st_size < total:
        raise ConnectionError(f"the connection closed after {partial.stat().st_size:,} of {total:,} bytes")

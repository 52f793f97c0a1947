"""D4RL's files by name: found in a folder the user has, else downloaded once and kept.

What is downloaded must have the SHA-256 that is known of it beforehand, whoever sends it, and so must a file
in the cache at every later use. Files in folders of the user's own are theirs, and read as they are.
"""

from __future__ import annotations

import contextlib
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

from mcetm.console import Advance, progress
from mcetm.errors import UserError
from mcetm.files import atomic_write, cache_folder, data_folders, find_file, path_kind, sha256_of
from mcetm.tasks.datasets import D4RL_DATASETS, D4RL_SHA256

D4RL_URL = "https://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2"
_ATTEMPTS = 4
_TIMEOUT = 30.0
_PAUSE = 0.5
_CHUNK = 1 << 20
_MOST_BYTES = 2 << 30
"""More than any of the files has: a server that goes on sending would fill the disk."""
_LEAST_BYTES = 1 << 16
_LEAST_SECONDS = 60.0
"""In this time at least so many bytes must come: a server that sends one at a time would never end."""


def d4rl_file(name: str, *, folder: Path | None = None) -> Path:
    """The file of a D4RL dataset such as `hopper-medium-v2`, downloaded where it is not at hand.

    Looked for in `folder`, in `$MCETM_DATA` and in the cache, each with its sub-folder `d4rl`.
    `$MCETM_D4RL_URL` names a mirror.
    """
    found = find_d4rl(name, folder=folder)
    file_name = D4RL_DATASETS[name]
    target = cache_folder() / "d4rl" / file_name
    if found is not None:
        if found.is_relative_to(cache_folder()) and not _is_published(found, file_name):
            raise UserError(
                f"{found} is not the file that was published (its SHA-256 differs); delete it to download it "
                "again, or keep it outside the cache, in a folder named in MCETM_DATA."
            )
        return found
    url = f"{os.environ.get('MCETM_D4RL_URL', D4RL_URL).rstrip('/')}/{file_name}"
    try:
        _check_address(url)
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
    if folder is not None and path_kind(folder) != "folder":
        raise UserError(f"There is no folder {folder}.")
    places = [*([folder] if folder else []), *data_folders()]
    return find_file("d4rl", [D4RL_DATASETS[name], f"{name}.hdf5"], places)


def _is_published(path: Path, file_name: str) -> bool:
    return sha256_of(path) == D4RL_SHA256[file_name]


def _download(url: str, target: Path) -> None:
    """Fetch a file whole or not at all; a transfer that breaks off is continued where it stopped."""
    with atomic_write(target) as partial:
        partial.touch()
        _fetch(url, partial, label=target.name)
        with partial.open("rb") as file:
            magic = file.read(4)
        if magic != b"\x89HDF":
            raise ConnectionError("what came is not an HDF5 file")  # an error page, say
        if not _is_published(partial, target.name):
            raise ConnectionError("what came is not the file that was published: its SHA-256 differs")


def _check_address(url: str) -> None:
    """Nobody on the way may read or change what comes: only https, or this machine itself."""
    parts = urllib.parse.urlsplit(url)
    here = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not here:
        raise ValueError("only https addresses are used")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address only where that one could have been named too."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        try:
            _check_address(newurl)
        except ValueError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


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
    return urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT)


def _receive(response: HTTPResponse, partial: Path, bar: Advance) -> None:
    continued = response.status == HTTPStatus.PARTIAL_CONTENT
    have = partial.stat().st_size if continued else 0
    length = response.headers.get("Content-Length")
    total = None if length is None else int(length) + have
    if total is not None and not 0 <= total <= _MOST_BYTES:
        raise ValueError(f"the server speaks of {total:,} bytes, and at most {_MOST_BYTES:,} are expected")
    bar(0 if continued else -partial.stat().st_size, total)
    since, recent = time.monotonic(), 0
    with partial.open("ab" if continued else "wb") as file:
        while chunk := response.read1(_CHUNK):
            have, recent = have + len(chunk), recent + len(chunk)
            if have > _MOST_BYTES:
                raise ValueError(f"the server sent more than {_MOST_BYTES:,} bytes")
            file.write(chunk)
            bar(len(chunk), total)
            if time.monotonic() - since >= _LEAST_SECONDS:
                if recent < _LEAST_BYTES:
                    raise ConnectionError(f"only {recent:,} bytes came in {_LEAST_SECONDS:g} seconds")
                since, recent = time.monotonic(), 0
    if total is not None and have < total:
        raise ConnectionError(f"the connection closed after {have:,} of {total:,} bytes")

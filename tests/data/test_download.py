"""Downloads against a real HTTP server on this machine, well-behaved and otherwise."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mcetm import UserError, load_dataset
from mcetm.data import download
from mcetm.data.download import d4rl_file
from mcetm.files import cache_folder
from mcetm.tasks.datasets import D4RL_DATASETS, D4RL_SHA256
from tests.conftest import random_fields, write_hdf5

NAME = "hopper-medium-v2"
FILE = "hopper_medium-v2.hdf5"


class Server(ThreadingHTTPServer):
    """Serves one body; `breaks` lists after how many bytes successive answers break off."""

    daemon_threads = True

    def __init__(self, body: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.breaks, self.ranges, self.etag = body, [], True, '"one"'
        self.requests: list[str | None] = []
        self.pause = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        server, wish = self.server, self.headers.get("Range")
        server.requests.append(wish)
        if not self.path.endswith(FILE):
            self.send_error(404)
            return
        start = 0
        if wish and server.ranges and self.headers.get("If-Range") == server.etag:
            start = int(wish.removeprefix("bytes=").removesuffix("-"))
        body = server.body[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", server.etag)
        self.end_headers()
        stop = server.breaks.pop(0) if server.breaks else len(body)
        for at in range(0, stop, 4096):
            self.wfile.write(body[at : min(at + 4096, stop)])
            time.sleep(server.pause)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the test output clean."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    body = write_hdf5(
        tmp_path / "made.hdf5", random_fields((500, 500), obs_dim=11, action_dim=3)
    ).read_bytes()
    with Server(body) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("MCETM_D4RL_URL", server.url)
        monkeypatch.setattr(download, "_PAUSE", 0.01)
        monkeypatch.setitem(download.D4RL_SHA256, FILE, hashlib.sha256(body).hexdigest())
        yield server
        server.shutdown()


def left_behind() -> list[str]:
    folder = cache_folder() / "d4rl"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_a_download_is_kept(server: Server) -> None:
    log = load_dataset(NAME)
    assert len(log) == 1000
    assert log.metadata.task == "hopper"
    assert left_behind() == [FILE]
    load_dataset(NAME)
    assert len(server.requests) == 1, "the second use comes from the cache"


def test_an_interrupted_transfer_is_continued(server: Server) -> None:
    server.breaks = [20_000, 8_192]
    assert d4rl_file(NAME).read_bytes() == server.body
    assert server.requests == [None, "bytes=20000-", "bytes=28192-"]


def test_without_ranges_the_transfer_begins_again(server: Server) -> None:
    server.breaks, server.ranges = [20_000], False
    assert d4rl_file(NAME).read_bytes() == server.body


def test_a_file_that_changes_meanwhile_is_not_patched_together(server: Server) -> None:
    server.breaks = [20_000]
    original, respond = server.body, Handler.do_GET
    server.body = original[:-1] + b"\x07"

    def change(handler: Handler) -> None:
        if server.requests:
            server.etag, server.body = '"two"', original
        respond(handler)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handler, "do_GET", change)
        assert d4rl_file(NAME).read_bytes() == original


def test_a_transfer_that_never_ends_leaves_nothing(server: Server) -> None:
    server.breaks = [20_000] + [4_096] * 10
    with pytest.raises(UserError, match=r"could not be downloaded .* closed after 32,288 of"):
        d4rl_file(NAME)
    assert left_behind() == []


@pytest.mark.parametrize("declared", [True, False])
def test_a_server_that_goes_on_sending_does_not_fill_the_disk(
    server: Server, declared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_MOST_BYTES", 9_000)

    def endless(handler: Handler) -> None:
        server.requests.append(None)
        handler.send_response(200)
        if declared:
            handler.send_header("Content-Length", str(10**15))
        handler.end_headers()
        with contextlib.suppress(OSError):  # until the other side has enough
            while True:
                handler.wfile.write(server.body)

    monkeypatch.setattr(Handler, "do_GET", endless)
    words = r"speaks of 1,000,000,000,000,000 bytes" if declared else "sent more than 9,000 bytes"
    with pytest.raises(UserError, match=words):
        d4rl_file(NAME)
    assert len(server.requests) == 1, "asking again would not help"
    assert left_behind() == []


def test_a_server_that_dribbles_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_LEAST_SECONDS", 0.02)
    server.pause = 0.01
    with pytest.raises(UserError, match=r"only [\d,]+ bytes came in 0.02 seconds"):
        d4rl_file(NAME)
    assert left_behind() == []


def test_a_length_that_is_none_is_one_sentence(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "-5")
        handler.end_headers()

    monkeypatch.setattr(Handler, "do_GET", odd)
    with pytest.raises(UserError, match="could not be downloaded"):
        d4rl_file(NAME)


def test_a_changed_file_is_refused(server: Server) -> None:
    path = d4rl_file(NAME)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match="is not the file that was published"):
        load_dataset(NAME)


def test_a_download_of_other_bytes_is_refused(server: Server) -> None:
    server.body = server.body[:-1] + b"x"
    with pytest.raises(UserError, match="what came is not the file that was published: its SHA-256 differs"):
        d4rl_file(NAME)
    assert left_behind() == []


@pytest.mark.parametrize("address", ["http://example.com/d4rl", "ftp://example.com", "file:///etc"])
def test_only_https_is_used(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCETM_D4RL_URL", address)
    with pytest.raises(UserError, match="only https addresses are used"):
        d4rl_file(NAME)
    assert not (cache_folder() / "d4rl").exists()


def test_a_server_cannot_lead_away_from_https(server: Server) -> None:
    def redirect(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://example.com/other.hdf5")
        handler.end_headers()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handler, "do_GET", redirect)
        with pytest.raises(UserError, match="only https addresses are used"):
            d4rl_file(NAME)
    assert left_behind() == []


def test_every_dataset_has_a_published_checksum() -> None:
    assert set(D4RL_SHA256) == set(D4RL_DATASETS.values())
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in D4RL_SHA256.values())
    assert len(set(D4RL_SHA256.values())) == len(D4RL_SHA256)


def test_an_error_page_does_not_become_the_dataset(server: Server) -> None:
    server.body = b"<html>come back later</html>"
    with pytest.raises(UserError, match="what came is not an HDF5 file"):
        d4rl_file(NAME)
    assert left_behind() == []


def test_a_refusal_says_which_file_to_put_where(server: Server) -> None:
    with pytest.raises(UserError) as caught:
        d4rl_file("walker2d-random-v2")
    assert "Not Found" in str(caught.value)
    assert f"put the file walker2d_random-v2.hdf5 into {cache_folder() / 'd4rl'}" in str(caught.value)
    assert left_behind() == []


def test_without_a_network_one_sentence_says_what_to_do() -> None:
    with pytest.raises(UserError) as caught:
        load_dataset(NAME)
    assert f"put the file {FILE} into" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1:9/x"])
def test_an_unusable_address_is_one_sentence(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCETM_D4RL_URL", url)
    with pytest.raises(UserError, match="could not be downloaded"):
        load_dataset(NAME)
    assert not (cache_folder() / "d4rl").exists()


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no folder"):
        load_dataset(NAME, folder=tmp_path / "none")


@pytest.mark.parametrize("place", ["argument", "variable"])
def test_a_file_at_hand_is_not_downloaded(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    (folder / "d4rl").mkdir(parents=True)
    write_hdf5(folder / "d4rl" / FILE, random_fields(obs_dim=11, action_dim=3))
    if place == "variable":
        monkeypatch.setenv("MCETM_DATA", str(folder))
    assert len(load_dataset(NAME, folder=folder if place == "argument" else None)) == 21


def test_a_kill_in_the_middle_leaves_no_file_of_that_name(server: Server) -> None:
    server.pause = 0.05
    program = (
        "from mcetm.data import download\n"
        f"download.D4RL_SHA256[{FILE!r}] = {download.D4RL_SHA256[FILE]!r}\n"
        f"download.d4rl_file({NAME!r})\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=os.environ.copy()) as process:
        folder = cache_folder() / "d4rl"
        deadline = time.monotonic() + 30
        while not any(f.stat().st_size > 8192 for f in folder.glob(".*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert any(f.stat().st_size > 8192 for f in folder.glob(".*")), "the transfer has begun"
        process.send_signal(signal.SIGKILL)
    assert [name for name in left_behind() if not name.startswith(".")] == []
    server.pause = 0.0
    assert d4rl_file(NAME).read_bytes() == server.body
    assert left_behind() == [FILE], "the remains of the killed download are gone"

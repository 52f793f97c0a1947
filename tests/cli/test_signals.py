"""Ctrl-C: once is polite, twice is at once, and never is there a traceback."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from mcetm import cli
from mcetm.cli import main
from mcetm.cli.signals import interruptible

_ALONE = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
"""
"""A child that outlives nobody: what it reads ends with the test, however that ends."""


@contextmanager
def child(source: str) -> Iterator[tuple[subprocess.Popen[str], IO[str], IO[str]]]:
    """A process with what it prints; it is gone afterwards, whatever the test has found."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", _ALONE + source], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield process, process.stdout, process.stderr
        finally:
            process.kill()


_SLOW_TO_STOP = """
import sys, time
from mcetm import cli

class Slow:
    def run(self):
        try:
            print("begun", flush=True)
            time.sleep(60)
        finally:
            print("saving", flush=True)
            time.sleep(60)

cli._run = lambda arguments: Slow().run()
cli.command()
"""


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interruption_ends_at_once(second: signal.Signals) -> None:
    with child(_SLOW_TO_STOP) as (process, out, err):
        assert out.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert out.readline() == "saving\n", "the first lets a training save"
        process.send_signal(second)
        assert process.wait(10) == 130
        assert err.read() == "mcetm: stopped at once.\n"


_DEAF = """
import hashlib, threading
from mcetm import cli
from mcetm.cli import signals

signals.SOON = 0.05

def run(arguments):
    threading.Timer(0.1, lambda: print("begun", flush=True)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes without a line of Python

cli._run = run
cli.command()
"""


def test_a_command_that_compiles_hears_of_interruptions_too() -> None:
    with child(_DEAF) as (process, out, err):
        assert out.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert "Ctrl-C again stops at once" in err.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert err.read() == "mcetm: stopped at once.\n"


@pytest.mark.parametrize("source", [_SLOW_TO_STOP, _DEAF])
def test_a_child_of_these_tests_ends_when_they_are_killed(source: str) -> None:
    with child(source) as (process, out, _):
        assert out.readline() == "begun\n"
        assert process.stdin is not None
        process.stdin.close()  # as the system does for a process that is no more
        assert process.wait(10) == 1


_SWALLOWS = """
import os, signal, time
from mcetm import cli

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

def run(arguments):
    Deaf()
    time.sleep(60)

cli._run = run
cli.command()
"""


def test_an_interruption_that_cannot_be_raised_comes_again() -> None:
    done = subprocess.run([sys.executable, "-c", _SWALLOWS], capture_output=True, text=True, timeout=20)
    assert done.returncode == 130
    assert done.stderr == "mcetm: interrupted; nothing half-written was left behind.\n"


def test_one_interruption_is_a_sentence_and_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(cli, "_run", lambda arguments: os.kill(os.getpid(), signal.SIGTERM))
    assert main([]) == 130
    assert capsys.readouterr().err == "mcetm: interrupted; nothing half-written was left behind.\n"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_of_somebody_elses_program_may_call_it() -> None:
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]

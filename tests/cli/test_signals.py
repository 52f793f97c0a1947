"""Ctrl-C: once is polite, twice is at once, and never is there a traceback."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from mcetm import cli
from mcetm.cli import main
from mcetm.cli.signals import interruptible

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
    with subprocess.Popen(
        [sys.executable, "-c", _SLOW_TO_STOP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "saving\n", "the first lets a training save"
        child.send_signal(second)
        assert child.wait(10) == 130
        assert child.stderr.read() == "mcetm: stopped at once.\n"


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
    with subprocess.Popen(
        [sys.executable, "-c", _DEAF], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        assert "Ctrl-C again stops at once" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 130
        assert child.stderr.read() == "mcetm: stopped at once.\n"


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

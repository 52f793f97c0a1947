"""Ctrl-C, or a scheduler's SIGTERM: once stops politely, twice at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first signal is a `KeyboardInterrupt`, on which a training saves; the second ends the process.

    Files are whole or absent at any moment, so there is nothing that an abrupt end could break.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        if len(arrived) > 1:
            os.write(2, b"mcetm: stopped at once.\n")  # print() may be what was interrupted
            os._exit(INTERRUPTED)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A signal that is ignored, as in a job that a shell runs in the background, stays ignored.
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

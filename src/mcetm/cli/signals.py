"""Ctrl-C, or a scheduler's SIGTERM: once stops politely, twice at once.

Python hears of a signal between two lines of Python, and a compiler may run for a minute between them. So a
thread listens too: it says that the first was heard, and ends the process at the second.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""


SOON = 1.0
"""Seconds after which a command that was interrupted says that it is still about to stop."""
_AT_ONCE = b"mcetm: stopped at once.\n"
_STOPPING = b"mcetm: stopping as soon as nothing is half done; Ctrl-C again stops at once.\n"


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first signal is a `KeyboardInterrupt`, on which a training saves; the second ends the process.

    Files are whole or absent at any moment, so there is nothing that an abrupt end could break.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    heard = _Heard()

    def handle(number: int, frame: FrameType | None) -> None:
        heard.raised += 1
        if heard.raised > 1:
            _end()
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A signal that is ignored, as in a job that a shell runs in the background, stays ignored.
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    with _listening(set(before), heard), _not_swallowed(heard):
        for number in before:
            signal.signal(number, handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


@dataclass
class _Heard:
    """What has come so far."""

    raised: int = 0
    """Interruptions that Python has raised."""
    repeats: int = 0
    """Signals that are on their way again, and are no new ones."""


@contextlib.contextmanager
def _not_swallowed(heard: _Heard) -> Iterator[None]:
    """An interruption that is raised where Python can only print it, as in `__del__`, comes once more."""
    before, main = sys.unraisablehook, threading.get_ident()

    def hook(found: Any) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            before(found)
            return
        heard.raised, heard.repeats = 0, heard.repeats + 1
        timer = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextlib.contextmanager
def _listening(numbers: set[signal.Signals], heard: _Heard) -> Iterator[None]:
    """Hear of signals whatever the main thread does."""
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    before = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    thread = threading.Thread(target=_listen, args=(source, numbers, heard), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(sink)
        thread.join()
        os.close(source)


def _listen(source: int, numbers: set[signal.Signals], heard: _Heard) -> None:
    count, said = 0, False
    while True:
        wait = SOON if count == 1 and not said else None
        if not select.select([source], [], [], wait)[0]:
            os.write(2, _STOPPING)
            said = True
            continue
        arrived = os.read(source, 64)
        if not arrived:
            return
        fresh = sum(number in numbers for number in arrived)
        again = min(fresh, heard.repeats)
        heard.repeats -= again
        count += fresh - again
        if count > 1:
            _end()


def _end() -> NoReturn:
    os.write(2, _AT_ONCE)  # print() may be what was interrupted
    os._exit(INTERRUPTED)

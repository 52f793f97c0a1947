"""Ctrl-C at a moment when nothing is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")  # a scheduler's word that time is nearly over
    if hasattr(signal, name)
]


@contextmanager
def interrupted_later() -> Iterator[None]:
    """A signal that arrives inside is handled at the end; only the main thread ever gets one.

    SIGTERM waits too where Python handles it, as the command line does; else it ends the process as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number, frame in arrived:
        before[signal.Signals(number)](number, frame)

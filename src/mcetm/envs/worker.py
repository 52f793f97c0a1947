"""A simulator process: reads blocks from its standard input, simulates them, sends the rows back.

Started as `python -m mcetm.envs.worker` rather than through `multiprocessing`, whose spawned
children run the caller's main script again: a user's script or notebook needs no `__main__`
guard here. When the parent dies, the pipe breaks and the worker with it.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO

_REPORT_EVERY = 0.1  # seconds between progress messages


def main() -> None:
    """Serve blocks until the input ends."""
    # The pipes carry our messages alone: whatever an environment prints goes to standard error.
    source: BinaryIO = os.fdopen(os.dup(0), "rb")
    sink: BinaryIO = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    from mcetm.envs.simulate import run_block
    from mcetm.errors import UserError

    def send(kind: str, content: object) -> None:
        pickle.dump((kind, content), sink, protocol=pickle.HIGHEST_PROTOCOL)
        sink.flush()

    try:
        while True:
            try:
                block = pickle.load(source)  # noqa: S301 (our own parent is at the other end)
            except EOFError:
                return
            try:
                reporter = _Reporter(send)
                rows = run_block(block, reporter)
                reporter.flush()
                send("rows", rows)
            except (BrokenPipeError, KeyboardInterrupt):
                return
            except UserError as error:
                send("mistake", str(error))
            except Exception:
                send("failure", traceback.format_exc())
    except BrokenPipeError:
        return


class _Reporter:
    """Adds up steps and sends the sum now and then."""

    def __init__(self, send: Callable[[str, object], None]) -> None:
        self._send, self._steps, self._last = send, 0, time.monotonic()

    def __call__(self, steps: int) -> None:
        self._steps += steps
        if time.monotonic() - self._last > _REPORT_EVERY:
            self.flush()

    def flush(self) -> None:
        self._send("steps", self._steps)
        self._steps, self._last = 0, time.monotonic()


if __name__ == "__main__":
    main()
    sys.exit(0)

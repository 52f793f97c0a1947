"""The parent's end of a simulator process: start it, hand it blocks, hear from it."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from mcetm.envs.simulate import Block
from mcetm.errors import UserError


class Simulator:
    """A worker process (`mcetm.envs.worker`) and the conversation with it."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mcetm.envs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                # One thread each: the processes share the cores, and sums keep their order.
                **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
            },
        )

    def kill(self) -> None:
        """Stop the process, whatever it is doing; a thread that listens to it hears the end."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let go of the pipes, once nobody listens any more."""
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):
                stream.close()  # pyright: ignore[reportOptionalMemberAccess]

    def run(self, block: Block) -> Iterator[tuple[str, Any]]:
        """Send a block; yield `("steps", count)` now and then and finally `("rows", fields)`."""
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None  # noqa: S101 (asked for above)
        assert sink is not None  # noqa: S101
        try:
            pickle.dump(block, sink)
            sink.flush()
            while True:
                message, content = pickle.load(source)  # noqa: S301 (our own child is at the other end)
                if message == "mistake":
                    reason = content[0].rstrip(".")
                    raise UserError(f"The environment {block.env_id} cannot be made: {reason}.")
                if message == "failure":
                    raise RuntimeError(f"a simulator of {block.env_id} failed:\n{content[1]}")
                yield message, content
                if message == "rows":
                    return
        except (EOFError, OSError, pickle.UnpicklingError):
            raise UserError(
                f"A simulator of {block.env_id} stopped unexpectedly{self._last_words()}."
            ) from None

    def _last_words(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            return f": {lines[-1]}" if lines else ""
        return ""

"""The parent's end of a simulator process: start it, hand it blocks, hear from it."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle

from mcetm.envs.simulate import Block
from mcetm.errors import UserError


def _pickled(block: Block) -> bytes:
    """A block as bytes; classes of a script or a notebook travel whole, as the worker cannot import them."""
    try:
        return cloudpickle.dumps(block)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError(f"A policy cannot be sent to the simulators: {error}.") from None


class Simulator:
    """A worker process (`mcetm.envs.worker`) and the conversation with it."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = self._start()
        except OSError:
            self._errors.close()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "mcetm.envs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                # What the parent can import, in its order; -P keeps the current folder from the front.
                "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
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
            sink.write(_pickled(block))
            sink.flush()
            while True:
                message, content = pickle.load(source)  # noqa: S301 (our own child is at the other end)
                if message == "mistake":
                    raise UserError(content)
                if message == "failure":
                    raise RuntimeError(f"a simulator of {block.env_id} failed:\n{content}")
                yield message, content
                if message == "rows":
                    return
        except (EOFError, OSError, pickle.UnpicklingError):
            raise UserError(f"A simulator of {block.env_id} {self._last_words()}.") from None

    def _last_words(self) -> str:
        """How the process ended."""
        code = self._process.wait()
        if code < 0:
            memory = " (is there enough memory?)" if -code == signal.SIGKILL else ""
            return f"was stopped by signal {-code}{memory}"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"ended unexpectedly{': ' + lines[-1] if lines else ''}"

"""Fast parallel collection: the same data for the same seed, whatever the number of processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from mcetm.console import Advance, progress
from mcetm.data.transitions import Metadata, Transitions, concatenate
from mcetm.data.validate import build
from mcetm.envs.simulate import Block
from mcetm.errors import UserError
from mcetm.tasks.policy import Policy
from mcetm.tasks.registry import Task

_LANES = 8
"""Environments per block: enough to make the policy's matrix products worth their call."""
_EPISODES_PER_LANE = 4
"""Full-length episodes a lane is meant for: long enough that finishing the last one costs little."""
_DEFAULT_EPISODE = 1000


@dataclass(frozen=True)
class Share:
    """A number of transitions to be collected by one policy, or by a mixture of several."""

    policies: tuple[Policy, ...]
    steps: int


def collect(
    task: Task,
    shares: Sequence[Share],
    *,
    seed: int = 0,
    processes: int | None = None,
    label: str | None = None,
    note: str = "",
) -> Transitions:
    """Exactly the wished number of transitions, share after share, episodes whole but for the last.

    The work is cut into blocks of a fixed make-up (see `mcetm.envs.simulate`), each with its
    own seed, and handed to `processes` simulators (default: one per core).
    """
    if seed < 0:
        raise UserError(f"The seed must not be negative, and it is {seed}.")
    processes = processes or available_cores()
    blocks: list[Block] = []
    owners: list[int] = []
    for number, share in enumerate(shares):
        if share.steps < 1:
            raise UserError(f"At least one step must be collected, not {share.steps}.")
        for quotas in _quotas(share.steps, task.time_limit or _DEFAULT_EPISODE):
            seeds = (seed, number, len(blocks))
            blocks.append(Block(task.env_id, task.env_kwargs, share.policies, quotas, seeds, task.time_limit))
            owners.append(number)
    total = sum(share.steps for share in shares)
    with progress(label or f"collecting {task.name}", total, unit="steps") as advance:
        results = _simulate(blocks, min(processes, len(blocks)), advance)

    metadata = Metadata(
        source=f"collected from {task.env_id}",
        task=task.name,
        provenance={
            "task": task.name,
            "environment": task.env_id,
            "seed": seed,
            "shares": [
                {"steps": share.steps, "policies": [policy.checksum for policy in share.policies]}
                for share in shares
            ],
            "versions": {name: version(name) for name in ("mcetm", "gymnasium", "mujoco", "numpy")},
            **({"note": note} if note else {}),
        },
    )
    parts = [
        _gather(
            [rows for rows, owner in zip(results, owners, strict=True) if owner == number], metadata
        ).head(share.steps)
        for number, share in enumerate(shares)
    ]
    return concatenate(parts, parts[0].metadata)


def available_cores() -> int:
    """Cores this process may use, which in a container is fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(steps: int, episode: int) -> Iterator[tuple[int, ...]]:
    """Steps of each lane of each block; they depend on the wish alone, never on the machine.

    Work is dealt out in whole full-length episodes, evenly over blocks and over their lanes, so
    that tasks of fixed length waste nothing and blocks take about equally long.
    """
    episodes = -(-steps // episode)
    blocks = -(-episodes // (_LANES * _EPISODES_PER_LANE))
    surplus = episodes * episode - steps
    for share in _deal(episodes, blocks):
        quotas = [count * episode for count in _deal(share, min(_LANES, share))]
        quotas[0] -= surplus  # the first lane of the first block gets the shorter, last episode
        surplus = 0
        yield tuple(quotas)


def _deal(items: int, hands: int) -> list[int]:
    """How many each hand gets when items are dealt out evenly."""
    return [items * (i + 1) // hands - items * i // hands for i in range(hands)]


def _gather(blocks: list[dict[str, np.ndarray]], metadata: Metadata) -> Transitions:
    fields = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    infos = {name: fields.pop(name) for name in ("qpos", "qvel") if name in fields}
    return build(fields, metadata, infos=infos, min_transitions=1)


def _simulate(blocks: list[Block], processes: int, advance: Advance) -> list[dict[str, np.ndarray]]:
    """Run every block in some simulator process; results in the order of the blocks."""
    results: list[dict[str, np.ndarray] | None] = [None] * len(blocks)
    pending: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(blocks)):
        pending.put(number)
    lock = threading.Lock()

    def serve(simulator: _Simulator) -> None:
        while True:
            try:
                number = pending.get_nowait()
            except queue.Empty:
                return
            for kind, content in simulator.run(blocks[number]):
                if kind == "steps":
                    with lock:
                        advance(content)
                else:
                    results[number] = content

    with contextlib.ExitStack() as stack:
        # Simulators are closed last-in-first-out, before the pool waits for its threads.
        pool = stack.enter_context(ThreadPoolExecutor(processes))
        simulators = [stack.enter_context(_Simulator()) for _ in range(processes)]
        for future in [pool.submit(serve, simulator) for simulator in simulators]:
            future.result()
    return [rows for rows in results if rows is not None]


class _Simulator:
    """A worker process and the conversation with it."""

    def __enter__(self) -> _Simulator:
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mcetm.envs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                # One thread each: the processes share the cores, and sums keep their order.
                **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
            },
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):
                stream.close()  # pyright: ignore[reportOptionalMemberAccess]

    def run(self, block: Block) -> Iterator[tuple[str, Any]]:
        """Send a block; yield progress and finally its rows."""
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None  # noqa: S101 (asked for in __enter__)
        assert sink is not None  # noqa: S101
        try:
            pickle.dump(block, sink)
            sink.flush()
            while True:
                kind, content = pickle.load(source)  # noqa: S301 (our own child is at the other end)
                if kind == "mistake":
                    raise UserError(
                        f"The environment {block.env_id} cannot be made: {content[0].rstrip('.')}."
                    )
                if kind == "failure":
                    raise RuntimeError(f"a simulator of {block.env_id} failed:\n{content[1]}")
                yield kind, content
                if kind == "rows":
                    return
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self._errors.seek(0)
            last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise UserError(
                f"A simulator of {block.env_id} stopped unexpectedly{': ' + last[0] if last else ''}."
            ) from None

"""Fast parallel collection: the same data for the same seed, whatever the number of processes.

A share of a dataset is the beginning of an endless row of blocks, each of a fixed make-up and with
its own seed (see `mcetm.envs.simulate`). Simulator processes work through the blocks in order; as
soon as the blocks at the front hold enough rows, the share is complete and what is still running is
stopped. So episodes are never cut but at a share's end, no process waits for another, and how many
processes there are changes the time alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mcetm.arguments import whole
from mcetm.console import Advance, progress
from mcetm.data.transitions import FIELDS, Metadata, Transitions
from mcetm.data.validate import build
from mcetm.envs.simulate import Block
from mcetm.envs.simulator import Simulator
from mcetm.errors import UserError
from mcetm.memory import free_memory
from mcetm.tasks.policy import BehaviourPolicy
from mcetm.tasks.registry import Task
from mcetm.versions import version_of

_LANES = 8
"""Environments per block: enough to make the policy's matrix products worth their call."""
_DEFAULT_EPISODE = 1000

_MOST_STEPS, MOST_PROCESSES = 2**62, 1024
"""What is asked for beyond this is a slip of the keyboard."""

Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Share:
    """A number of transitions to be collected by one policy, or by a mixture of several."""

    policies: tuple[BehaviourPolicy, ...]
    steps: int
    names: tuple[str, ...] = ()
    """What the policies are called, for the provenance."""


def collect_shares(
    task: Task,
    shares: Sequence[Share],
    *,
    seed: int = 0,
    processes: int | None = None,
    dataset: str | None = None,
    note: str = "",
) -> Transitions:
    """Exactly the wished number of transitions, share after share.

    Episodes are whole; only the last one of a share may be cut, and is marked truncated.
    `processes` defaults to one per core.
    """
    whole("seed", seed)
    if not shares:
        raise UserError("Nothing is to be collected: there are no shares.")
    if processes is not None:
        whole("processes", processes, least=1, most=MOST_PROCESSES)
    for share in shares:
        whole("steps", share.steps, least=1, most=_MOST_STEPS)
    steps, free = sum(share.steps for share in shares), free_memory()
    least = steps * (2 * task.obs_dim + task.action_dim) * 4
    if free is not None and least > free:
        raise UserError(
            f"There is not enough memory to collect {steps:,} steps: they take {least:,} bytes, and {free:,} "
            "are free."
        )
    plan = _Plan(task, shares, seed)
    with progress(f"collecting {dataset or task.name}", steps, unit="steps") as advance:
        _simulate(plan, min(processes or available_cores(), plan.most_blocks), advance)
    metadata = Metadata(
        source=f"collected from {task.env_id}",
        action_low=task.action_low,
        action_high=task.action_high,
        provenance={
            **({"dataset": dataset} if dataset else {}),
            "task": task.name,
            "environment": task.env_id,
            "seed": seed,
            "shares": [
                {
                    "steps": share.steps,
                    "policies": list(share.names or map(repr, share.policies)),
                    "checksums": [policy.checksum for policy in share.policies],
                }
                for share in shares
            ],
            "versions": {name: version_of(name) for name in ("mcetm", "gymnasium", "mujoco", "numpy")},
            **({"note": note} if note else {}),
        },
    )
    # The task is named afterwards: it need not be registered.
    return _transitions(plan.rows(), metadata).with_metadata(task=task.name)


def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class _Progress:
    """What has arrived of one share: blocks by number, and how many rows the unbroken front holds."""

    arrived: dict[int, Rows] = field(default_factory=dict)
    handed_out: int = 0
    front_blocks: int = 0
    front_rows: int = 0


class _Plan:
    """Which block comes next, and when there are enough; safe to ask from several threads."""

    def __init__(self, task: Task, shares: Sequence[Share], seed: int) -> None:
        self._task, self._shares, self._seed = task, shares, seed
        self._progress = [_Progress() for _ in shares]
        self._lock = threading.Lock()

    @property
    def most_blocks(self) -> int:
        """Blocks that can be needed at most."""
        return sum(-(-s.steps // self._block(i, 0).quota) for i, s in enumerate(self._shares))

    def next_block(self) -> tuple[int, int, Block] | None:
        """A block of the first share that is not complete; None when all are."""
        with self._lock:
            for number, (share, done) in enumerate(zip(self._shares, self._progress, strict=True)):
                block = self._block(number, done.handed_out)
                # A block holds at least its quota, so no more of them than this can be needed.
                if done.front_rows >= share.steps or done.handed_out * block.quota >= share.steps:
                    continue
                done.handed_out += 1
                return number, done.handed_out - 1, block
            return None

    def _block(self, number: int, block: int) -> Block:
        """A full-length episode for each lane, and fewer lanes where little is wanted in all."""
        task, share = self._task, self._shares[number]
        episode = task.time_limit or _DEFAULT_EPISODE
        lanes = min(_LANES, -(-share.steps // episode))
        return Block(
            env_id=task.env_id,
            env_kwargs=task.env_kwargs,
            obs_dim=task.obs_dim,
            action_dim=task.action_dim,
            policies=share.policies,
            lanes=lanes,
            lane_steps=min(episode, share.steps),
            seed=(self._seed, number, block),
            time_limit=episode,
        )

    def put(self, number: int, block: int, rows: Rows) -> None:
        """A block has arrived."""
        with self._lock:
            done = self._progress[number]
            done.arrived[block] = rows
            while done.front_blocks in done.arrived:
                done.front_rows += len(done.arrived[done.front_blocks]["reward"])
                done.front_blocks += 1

    @property
    def complete(self) -> bool:
        """Whether every share has its rows."""
        with self._lock:
            return all(
                done.front_rows >= share.steps
                for share, done in zip(self._shares, self._progress, strict=True)
            )

    def rows(self) -> list[Rows]:
        """The blocks of all shares, each share cut to its size."""
        result = []
        for share, done in zip(self._shares, self._progress, strict=True):
            missing = share.steps
            for block in range(done.front_blocks):
                rows = {name: array[:missing] for name, array in done.arrived[block].items()}
                missing -= len(rows["reward"])
                if missing == 0:
                    rows["truncated"] = rows["truncated"].copy()
                    rows["truncated"][-1] |= not rows["terminated"][-1]
                result.append(rows)
                if missing == 0:
                    break
        return result


def _simulate(plan: _Plan, processes: int, advance: Advance) -> None:
    """Let simulator processes work through the plan until it is complete."""
    finished = threading.Event()
    failures: list[BaseException] = []
    lock = threading.Lock()

    def serve(simulator: Simulator) -> None:
        try:
            while (order := plan.next_block()) is not None:
                number, block_number, block = order
                for message, content in simulator.run(block):
                    if message == "steps":
                        with lock:
                            advance(content)
                    else:
                        plan.put(number, block_number, content)
                if plan.complete:
                    finished.set()
        except BaseException as error:
            failures.append(error)
            finished.set()

    simulators: list[Simulator] = []
    threads: list[threading.Thread] = []
    try:
        for _ in range(processes):
            simulators.append(Simulator())
            threads.append(threading.Thread(target=serve, args=(simulators[-1],), daemon=True))
            threads[-1].start()
        finished.wait()
        failure = failures[0] if failures else None
    finally:
        # Whatever still runs is no longer needed; its thread ends with its process.
        for simulator in simulators:
            simulator.kill()
        for thread in threads:
            thread.join()
        for simulator in simulators:
            simulator.close()
    if failure is not None:
        raise failure


def _transitions(blocks: list[Rows], metadata: Metadata) -> Transitions:
    fields = {name: np.concatenate([rows[name] for rows in blocks]) for name in blocks[0]}
    infos = {name: fields.pop(name) for name in list(fields) if name not in FIELDS}
    return build(fields, metadata, infos=infos, min_transitions=1)

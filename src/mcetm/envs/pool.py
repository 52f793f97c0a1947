"""Simulator processes kept for work that comes in rounds, such as the evaluations of a training run."""

from __future__ import annotations

import contextlib
import queue
import threading
from types import TracebackType

import numpy as np

from mcetm.envs.collection import available_cores
from mcetm.envs.simulate import Block, run_block
from mcetm.envs.simulator import Simulator


class Pool:
    """Some processes that share blocks; with fewer than two, blocks are simulated in this process."""

    def __init__(self, processes: int | None = None) -> None:
        """Half of the cores by default: the others belong to what is being evaluated."""
        self._processes = available_cores() // 2 if processes is None else processes
        self._simulators: list[Simulator] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for simulator in self._simulators:
            simulator.kill()
            simulator.close()
        self._simulators = []

    def run(self, blocks: list[Block]) -> list[dict[str, np.ndarray]]:
        """The rows of every block, in their order."""
        rows: list[dict[str, np.ndarray] | None] = [None] * len(blocks)
        if self._processes > 1:
            self._share(blocks, rows)
        # What no process could simulate, such as an environment that only this one knows.
        return [
            run_block(block) if found is None else found for block, found in zip(blocks, rows, strict=True)
        ]

    def _share(self, blocks: list[Block], rows: list[dict[str, np.ndarray] | None]) -> None:
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(blocks)):
            waiting.put(number)
        with contextlib.suppress(OSError):  # with fewer processes than wanted, or none, it takes longer
            while len(self._simulators) < min(self._processes, len(blocks)):
                self._simulators.append(Simulator())
        broken: list[Simulator] = []

        def serve(simulator: Simulator) -> None:
            try:
                while True:
                    number = waiting.get_nowait()
                    for message, content in simulator.run(blocks[number]):
                        if message == "rows":
                            rows[number] = content
            except queue.Empty:
                pass
            except Exception:  # one that is killed in the middle of a message can send anything
                broken.append(simulator)

        threads = [threading.Thread(target=serve, args=(s,), daemon=True) for s in self._simulators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for simulator in broken:
            self._simulators.remove(simulator)
            simulator.kill()
            simulator.close()

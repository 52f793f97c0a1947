"""A log that the device cannot hold: a window of its rows is there, and another one after some steps.

While steps are taken on one window, the next is read on a thread. Which rows a window has depends on its
number alone, so a training that was stopped meets the same windows again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

from mcetm.data.streamed import StreamedTransitions
from mcetm.data.transitions import Transitions
from mcetm.training.batches import Batch

LASTS = 1000
"""Steps that a window serves at least; chunks of steps are not cut for it."""


@dataclass(frozen=True)
class Windows:
    """The data of steps where they change with time."""

    log: StreamedTransitions
    view: Callable[[Batch], Any]
    """The data, from the rows of a window."""

    def read(self, number: int) -> Any:
        """The data of a window."""
        return self.view(Batch.of_fields(self.log.draw_window(number)))


def data_of(log: Transitions, view: Callable[[Batch], Any] = lambda batch: batch) -> Any:
    """What `train_loop` takes as its data: all rows of a log, or windows of it."""
    if log.rows_at_once == len(log):
        return view(Batch.of(log))
    return Windows(cast(StreamedTransitions, log), view)


def identity_of(log: Transitions) -> dict[str, Any]:
    """What a checkpoint keeps of the log: its checksum, and the size of its windows where it has several."""
    windows = {} if log.rows_at_once == len(log) else {"window": log.rows_at_once}
    return {"data": log.checksum, **windows}


@contextlib.contextmanager
def feed(data: Any, place: Callable[[Any], Any], chunk: int) -> Iterator[Callable[[int], Any]]:
    """A function that gives the data at a step, which begins a chunk; `place` puts them on the device."""
    if not isinstance(data, Windows):
        placed = place(data)
        yield lambda step: placed
        return
    lasts = -(-LASTS // chunk) * chunk
    coming: dict[int, Future[Any]] = {}
    with ThreadPoolExecutor(1, "windows") as reader:

        def at(step: int) -> Any:
            number = step // lasts
            for wanted in (number, number + 1):
                if wanted not in coming:
                    coming[wanted] = reader.submit(lambda n=wanted: place(data.read(n)))
            for old in [n for n in coming if n < number]:
                del coming[old]
            return coming[number].result()

        try:
            yield at
        finally:
            reader.shutdown(wait=False, cancel_futures=True)

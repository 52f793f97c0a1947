"""Reading one million transitions of 17 observations, as a ratio to h5py reading the same arrays.

Both read the same uncompressed file from the page cache; ours also validates every number and finds the
episodes. They take turns, and the median of the rounds counts.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from mcetm.data import make_card, read_d4rl
from mcetm.data.transitions import Transitions
from record import record

ROWS, ROUNDS = 1_000_000, 15
NAMES = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")


def main() -> None:
    """Write a file, time both readers on it, record the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.hdf5"
        _made().save(path)
        ours, plain = [], []
        for _ in range(ROUNDS):
            plain.append(_seconds(lambda: _plain(path)))
            ours.append(_seconds(lambda: read_d4rl(path)))
        data = read_d4rl(path)
        card = _seconds(lambda: make_card(data))
        size = path.stat().st_size
    record(
        "read",
        {
            "transitions": ROWS,
            "file_bytes": size,
            "h5py_seconds": round(statistics.median(plain), 4),
            "mcetm_seconds": round(statistics.median(ours), 4),
            "ratio": round(statistics.median(ours) / statistics.median(plain), 2),
            "card_seconds": round(card, 2),
        },
    )


def _made() -> Transitions:
    rng = np.random.default_rng(0)
    path = rng.standard_normal((ROWS + 1, 17), dtype=np.float32)
    truncated = np.arange(ROWS) % 1000 == 999
    return Transitions.from_arrays(
        obs=path[:-1],
        action=rng.uniform(-1, 1, (ROWS, 6)).astype(np.float32),
        reward=rng.standard_normal(ROWS, dtype=np.float32),
        next_obs=path[1:],
        terminated=np.zeros(ROWS, bool),
        truncated=truncated,
        task="halfcheetah",
    )


def _plain(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: np.asarray(file[name]) for name in NAMES}


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

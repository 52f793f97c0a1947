"""The logs of a benchmark: read when a cell needs one, a part of it where a table asks for that."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from mcetm import UserError, load_dataset
from mcetm.data import Transitions
from mcetm.pipeline import Cell
from mcetm_experiments.benchmark.plan import Planned, shared_name

_SEED = 0
"""Which episodes a part of a log has is the same for all systems and seeds."""


def with_log(planned: Planned, out: Path, data: Path | None) -> tuple[Cell, Transitions]:
    """The cell with the path of its log, and the log."""
    source, log = _read(planned.log, planned.share, out, data)
    return replace(planned.cell, config=replace(planned.cell.config, dataset=source)), log


@lru_cache(maxsize=2)  # a million rows each; tables go through systems on one log after the other
def _read(name: str, share: float, out: Path, data: Path | None) -> tuple[str, Transitions]:
    whole = load_dataset(name, folder=data)
    if share == 1.0:
        source = whole.metadata.source
        return (source if data is not None and Path(source).exists() else name), whole
    part = thinned(whole, share)
    path = (
        out
        / "logs"
        / f"{shared_name(Path(name).name, share)}-{part.checksum[:12]}.npz".replace(" %", "").replace(
            " ", "-"
        )
    )
    if not path.exists():
        part.save(path)
    return str(path.resolve()), part


def thinned(log: Transitions, share: float) -> Transitions:
    """Whole episodes, drawn at random until they have this share of the rows."""
    order = np.random.default_rng(_SEED).permutation(log.num_episodes)
    rows = np.cumsum(log.episode_lengths[order])
    count = int(np.searchsorted(rows, share * len(log))) + 1
    if count >= log.num_episodes:
        raise UserError(f"{log.metadata.source} has too few episodes for {100 * share:g} % of it.")
    return log.select_episodes(np.sort(order[:count]))

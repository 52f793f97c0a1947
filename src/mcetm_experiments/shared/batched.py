"""Many rows through one compiled program, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np


def in_batches(function: Callable[..., Any], columns: Sequence[Any], size: int) -> Any:
    """What a function of rows makes of all of them, as a tree of NumPy arrays."""
    count = len(columns[0])
    size = min(size, count)
    parts = []
    for i in range(0, count, size):
        # The last batch begins early, so that all have one size and one program serves them.
        first = min(i, count - size)
        found = function(*(column[first : first + size] for column in columns))
        parts.append(jax.tree_util.tree_map(lambda x, fresh=i - first: np.asarray(x)[fresh:], found))
    return jax.tree_util.tree_map(lambda *pieces: np.concatenate(pieces), *parts)

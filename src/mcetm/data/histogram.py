"""How often values lie where, whatever their size is."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int


def histogram(
    values: Float[np.ndarray, " values"], bins: int
) -> tuple[Int[np.ndarray, " bins"], Float[np.ndarray, " edges"]]:
    """Counts, and the edges of the bins between the least and the largest value.

    Values that hardly differ for their size are told apart too: NumPy's own refuses those.
    """
    least = values.min()
    spread = values.max() - least
    if not spread > 0.0:
        return np.histogram(np.zeros(len(values)), bins=bins)[0], least + np.linspace(-0.5, 0.5, bins + 1)
    counts, edges = np.histogram((values - least) / spread, bins=bins, range=(0.0, 1.0))
    return counts, least + spread * edges

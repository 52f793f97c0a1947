"""Real contact: how well transition models foresee a cube that is tossed onto a table."""

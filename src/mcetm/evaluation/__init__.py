"""Returns in an environment, normalised scores and their statistics."""

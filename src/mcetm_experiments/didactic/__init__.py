"""A function that jumps: which transition models can follow it (section 5.1)."""

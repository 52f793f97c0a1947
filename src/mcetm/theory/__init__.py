"""Finite MDPs, the pessimistic operators and the performance bound."""

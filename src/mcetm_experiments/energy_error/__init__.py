"""Scores of distrust against true errors, on the data and off them (appendix)."""

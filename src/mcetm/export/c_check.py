"""The function by which a controller finds out whether its compiler and processor do as NumPy does."""

from __future__ import annotations

import numpy as np

from mcetm.export.c_text import constant
from mcetm.export.content import PolicyContent


def examples_of(content: PolicyContent) -> dict[str, np.ndarray]:
    """The examples of a policy whose answers are numbers."""
    known = {name: np.array(rows, np.float64) for name, rows in content.about["examples"].items()}
    usable = np.all([np.isfinite(rows.reshape(len(rows), -1)).all(axis=1) for rows in known.values()], axis=0)
    return {name: rows[usable] for name, rows in known.items()}


def check(content: PolicyContent, prefix: str) -> str:
    """A function that compares what the compiled policy says with what the NumPy policy said."""
    known, scored = examples_of(content), content.pairs is not None
    rows, width = known["action"].shape
    if not rows:
        return f"static inline int {prefix}_check(void) {{ return 0; }}\n\n"
    constants = "".join(
        f"  {line}\n" if line else "" for name in known for line in constant(name, known[name]).splitlines()
    )
    return (
        f"static inline int {prefix}_check(void) {{\n{constants}"
        f"  float found[{width}]{', unlike' if scored else ''};\n"
        f"  for (int i = 0; i < {rows}; ++i) {{\n"
        f"    if ({prefix}_act(obs[i], found{', &unlike' if scored else ''}) != 0) return -1;\n"
        f"    for (int j = 0; j < {width}; ++j)\n"
        f"      if (!{prefix}_near(found[j], action[i][j])) return -1;\n"
        + (f"    if (!{prefix}_near(unlike, trust_score[i])) return -1;\n" if scored else "")
        + "  }\n  return 0;\n}\n\n"
    )

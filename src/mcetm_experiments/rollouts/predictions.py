"""How a model predicts in an open-loop rollout, and what each kind of prediction is called."""

from __future__ import annotations

PREDICTIONS = {
    "point": "",
    "sampled": ", sampled",
    "selected": ", low energy",
    "confined": ", confined",
    "selected, confined": ", low energy, confined",
}
"""Kinds of predictions, and what they add to a model's name."""
CONFINED = {"confined": "point", "selected, confined": "selected"}
"""Kinds that are another one, confined to a tube around the manifold."""

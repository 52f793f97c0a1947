"""The one compiled loop, its checkpoints, metrics and progress; every model and agent uses it."""

from mcetm.training.checkpoint import load_checkpoint, save_checkpoint
from mcetm.training.loop import DivergenceError, EarlyStopping, Fit, Light, Saving, fit, over_members

__all__ = [
    "DivergenceError",
    "EarlyStopping",
    "Fit",
    "Light",
    "Saving",
    "fit",
    "load_checkpoint",
    "over_members",
    "save_checkpoint",
]

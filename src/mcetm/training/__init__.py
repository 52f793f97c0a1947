"""The one compiled loop, its checkpoints, metrics and progress; every model and agent uses it."""

from mcetm.training.batches import Batch
from mcetm.training.checkpoint import load_checkpoint, save_checkpoint
from mcetm.training.loop import DivergenceError, EarlyStopping, Fit, Light, Saving, fit, over_members
from mcetm.training.metrics import Metrics, MetricsFile
from mcetm.training.optimise import begin

__all__ = [
    "Batch",
    "DivergenceError",
    "EarlyStopping",
    "Fit",
    "Light",
    "Metrics",
    "MetricsFile",
    "Saving",
    "begin",
    "fit",
    "load_checkpoint",
    "over_members",
    "save_checkpoint",
]

"""The one compiled loop, its checkpoints, metrics and progress; every model and agent uses it."""

from mcetm.training.batches import Batch
from mcetm.training.checkpoint import load_checkpoint, save_checkpoint
from mcetm.training.chunk import DivergenceError
from mcetm.training.keeping import PartialState, Saving
from mcetm.training.loggers import (
    CSVLogger,
    JSONLinesLogger,
    MLflowLogger,
    TensorBoardLogger,
    WandbLogger,
)
from mcetm.training.loop import Callback, LoopResult, over_members, train_loop
from mcetm.training.metrics import Metrics, MetricsFile
from mcetm.training.minimise import minimise
from mcetm.training.optimise import init_optimiser
from mcetm.training.stopping import EarlyStopping

__all__ = [
    "Batch",
    "CSVLogger",
    "Callback",
    "DivergenceError",
    "EarlyStopping",
    "JSONLinesLogger",
    "LoopResult",
    "MLflowLogger",
    "Metrics",
    "MetricsFile",
    "PartialState",
    "Saving",
    "TensorBoardLogger",
    "WandbLogger",
    "init_optimiser",
    "load_checkpoint",
    "minimise",
    "over_members",
    "save_checkpoint",
    "train_loop",
]

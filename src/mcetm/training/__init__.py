"""The one compiled loop, its checkpoints, metrics and progress; every model and agent uses it."""

from mcetm.training.checkpoint import load_checkpoint, save_checkpoint
from mcetm.training.loop import (
    Callback,
    DivergenceError,
    EarlyStopping,
    LoopResult,
    PartialState,
    Saving,
    over_members,
    train_loop,
)

__all__ = [
    "Callback",
    "DivergenceError",
    "EarlyStopping",
    "LoopResult",
    "PartialState",
    "Saving",
    "load_checkpoint",
    "over_members",
    "save_checkpoint",
    "train_loop",
]

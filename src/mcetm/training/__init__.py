"""The one compiled loop, its checkpoints, metrics and progress; every model and agent uses it."""

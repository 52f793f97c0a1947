"""What is known about environments and named datasets, as plain data, and behaviour policies."""

from mcetm.tasks.datasets import D4RL_DATASETS, D4RL_LEVELS, RECIPES, Recipe, RecipePart
from mcetm.tasks.policy import BehaviourPolicy, TanhGaussianPolicy, UniformPolicy, read_policy
from mcetm.tasks.registry import ReferenceScores, Task, get_task, register_task, task_names
from mcetm.tasks.termination import HealthyBox

__all__ = [
    "D4RL_DATASETS",
    "D4RL_LEVELS",
    "RECIPES",
    "BehaviourPolicy",
    "HealthyBox",
    "Recipe",
    "RecipePart",
    "ReferenceScores",
    "TanhGaussianPolicy",
    "Task",
    "UniformPolicy",
    "get_task",
    "read_policy",
    "register_task",
    "task_names",
]

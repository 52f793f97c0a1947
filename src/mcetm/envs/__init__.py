"""Simulators: analytic behaviour policies, fast parallel collection, and datasets by name."""

from mcetm.envs.behaviour import find_policy
from mcetm.envs.bodies import Body
from mcetm.envs.collection import Share, available_cores, collect_shares
from mcetm.envs.controllers import CONTROLLERS, SwingUp
from mcetm.envs.physics import states_of, true_transitions
from mcetm.envs.recipes import collect, collect_recipe, dataset_path
from mcetm.envs.rendering import Frames, render
from mcetm.envs.simulate import make_env
from mcetm.envs.sources import described_columns, load_dataset

__all__ = [
    "CONTROLLERS",
    "Body",
    "Frames",
    "Share",
    "SwingUp",
    "available_cores",
    "collect",
    "collect_recipe",
    "collect_shares",
    "dataset_path",
    "described_columns",
    "find_policy",
    "load_dataset",
    "make_env",
    "render",
    "states_of",
    "true_transitions",
]

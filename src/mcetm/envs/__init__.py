"""Simulators: analytic behaviour policies, fast parallel collection, and datasets by name."""

from mcetm.envs.collection import Share, collect_shares
from mcetm.envs.controllers import CONTROLLERS, SwingUp
from mcetm.envs.recipes import collect, collect_recipe
from mcetm.envs.sources import load_dataset

__all__ = ["CONTROLLERS", "Share", "SwingUp", "collect", "collect_recipe", "collect_shares", "load_dataset"]

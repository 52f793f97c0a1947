"""Small networks and distributions, written for one example and `vmap`ped outside."""

from mcetm.nn.actor import Actor
from mcetm.nn.members import member_count, take_members
from mcetm.nn.mlp import MLP
from mcetm.nn.scaling import InputScaling, Scaling

__all__ = ["MLP", "Actor", "InputScaling", "Scaling", "member_count", "take_members"]

"""How a policy is learned: one file per algorithm, one for rollouts, one for Bellman targets."""

from mcetm.agents.agent import Agent, buffer_gigabytes
from mcetm.agents.bc import BCConfig, fit_bc
from mcetm.agents.critics import Critics, follow, make_critics, teach
from mcetm.agents.learner import Learner, Minibatch
from mcetm.agents.plain import Plain
from mcetm.agents.rollout import RolloutConfig
from mcetm.agents.sac import SAC
from mcetm.agents.targets import bellman_target, spread_penalty

__all__ = [
    "SAC",
    "Agent",
    "BCConfig",
    "Critics",
    "Learner",
    "Minibatch",
    "Plain",
    "RolloutConfig",
    "bellman_target",
    "buffer_gigabytes",
    "fit_bc",
    "follow",
    "make_critics",
    "spread_penalty",
    "teach",
]

"""How a policy is learned: one file per algorithm and per learner, one for rollouts, one that trains."""

from mcetm.agents.agent import AgentState, buffer_gigabytes
from mcetm.agents.algorithm import Algorithm, ModelBased, OnSAC, WithFloor
from mcetm.agents.bc import BC, fit_bc
from mcetm.agents.combo import COMBO
from mcetm.agents.cql import CQL
from mcetm.agents.critics import Critics, make_critics, polyak_update, update_critics
from mcetm.agents.edac import EDAC
from mcetm.agents.empo import EMPO
from mcetm.agents.fit import Agent, EvaluationSettings, Stage, fit_agent, make_stage
from mcetm.agents.iql import IQL
from mcetm.agents.learner import Learner, Minibatch
from mcetm.agents.mcetm import MCETM
from mcetm.agents.mobile import MOBILE
from mcetm.agents.mopo import MOPO
from mcetm.agents.morel import MOReL
from mcetm.agents.policy import Policy, load_policy
from mcetm.agents.rambo import RAMBO
from mcetm.agents.rollout import RolloutSettings
from mcetm.agents.sac import SAC, SACLearner
from mcetm.agents.targets import bellman_target, candidate_values, spread_penalty
from mcetm.agents.td3 import TD3
from mcetm.agents.td3bc import TD3BC
from mcetm.agents.trust import Trust

ALGORITHMS: tuple[type[Algorithm], ...] = (
    MCETM, MOBILE, MOPO, MOReL, EMPO, RAMBO, COMBO, CQL, EDAC, TD3BC, IQL, BC,
)  # fmt: skip
"""Every algorithm; a new one is a file and a word here."""

__all__ = [
    "ALGORITHMS",
    "BC",
    "COMBO",
    "CQL",
    "EDAC",
    "EMPO",
    "IQL",
    "MCETM",
    "MOBILE",
    "MOPO",
    "RAMBO",
    "SAC",
    "TD3",
    "TD3BC",
    "Agent",
    "AgentState",
    "Algorithm",
    "Critics",
    "EvaluationSettings",
    "Learner",
    "MOReL",
    "Minibatch",
    "ModelBased",
    "OnSAC",
    "Policy",
    "RolloutSettings",
    "SACLearner",
    "Stage",
    "Trust",
    "WithFloor",
    "bellman_target",
    "buffer_gigabytes",
    "candidate_values",
    "fit_agent",
    "fit_bc",
    "load_policy",
    "make_critics",
    "make_stage",
    "polyak_update",
    "spread_penalty",
    "update_critics",
]

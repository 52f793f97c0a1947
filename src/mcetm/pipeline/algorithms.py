"""Every algorithm by name: what learns, what it is taught, and which model it needs.

A new algorithm is one entry here, made of a learner, a target, and perhaps a regulariser of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mcetm.agents.agent import Algorithm
from mcetm.agents.cql import Conservative
from mcetm.agents.edac import Diverse
from mcetm.agents.empo import EMPO
from mcetm.agents.iql import IQL, reward_scale
from mcetm.agents.learner import Learner
from mcetm.agents.mcetm import MCETM
from mcetm.agents.mobile import MOBILE
from mcetm.agents.mopo import MOPO
from mcetm.agents.morel import MOReL
from mcetm.agents.plain import Plain
from mcetm.agents.rambo import Adversarial
from mcetm.agents.sac import SAC, Regulariser
from mcetm.agents.targets import estimate_value_floor
from mcetm.agents.td3 import TD3
from mcetm.data.transitions import Transitions
from mcetm.dynamics.world import Uncertainty

if TYPE_CHECKING:
    from mcetm.pipeline.config import PolicyConfig


Needs = Literal["log", "regressor", "disagreement", "energy"]


@dataclass(frozen=True)
class Recipe:
    """How an algorithm is put together."""

    label: str
    needs: Needs
    """The model it imagines with; `log` is model-free, `disagreement` is a regressor with a threshold."""
    settings: Callable[[PolicyConfig], Any]
    """The settings of what learns."""
    learner: Callable[..., Learner] | None = None
    """A fresh learner, from the policy's settings, statistics, action bounds and a key; None for cloning."""
    target: Callable[[PolicyConfig, Transitions], Algorithm] | None = None
    uncertainty: Uncertainty = "none"
    """What the world measures of each step, if the target asks for it."""
    truncates: bool = True
    """Whether rollouts end where a model with a threshold is not trusted."""
    reward_scale: Callable[[Transitions], float] | None = None
    adversarial: Callable[[PolicyConfig], Adversarial] | None = None
    """Changes a seed's own model between generations."""
    clones: bool = False
    """Whether the actor starts from behaviour cloning."""


def _sac(regulariser: Callable[[PolicyConfig], Regulariser] | None = None) -> dict[str, Any]:
    def learner(config: PolicyConfig, *arguments: Any, **more: Any) -> SAC:
        rule = None if regulariser is None else regulariser(config)
        return SAC.init(config.sac, *arguments, regulariser=rule, **more)

    return {"learner": learner, "settings": lambda config: config.sac}


_TD3: dict[str, Any] = {
    "learner": lambda config, *arguments, **more: TD3.init(config.td3, *arguments, **more),
    "settings": lambda config: config.td3,
}


def _floor(config: PolicyConfig, log: Transitions, discount: float) -> float:
    return estimate_value_floor(log, discount) if config.value_floor is None else config.value_floor


def _mcetm(settings: Callable[[PolicyConfig], Any]) -> Callable[[PolicyConfig, Transitions], MCETM]:
    return lambda config, log: MCETM(
        config.penalty, config.truncate, _floor(config, log, settings(config).discount), config.spread_of
    )


def _mobile(config: PolicyConfig, log: Transitions) -> MOBILE:
    return MOBILE(config.penalty, _floor(config, log, config.sac.discount))


def _morel(config: PolicyConfig, log: Transitions) -> MOReL:
    return MOReL(_floor(config, log, config.sac.discount))


def _conservative(config: PolicyConfig) -> Conservative:
    return Conservative(config.conservatism, kit_compat=config.kit_compat)


def _empo(label: str) -> Recipe:
    return Recipe(
        label,
        "energy",
        **_sac(),
        target=lambda config, log: EMPO(config.penalty),
        uncertainty="members",
        truncates=False,
    )


ALGORITHMS: dict[str, Recipe] = {
    "mcetm": Recipe("MC-ETM", "energy", **_sac(), target=_mcetm(lambda config: config.sac)),
    "mcetm-td3bc": Recipe("MC-ETM on TD3+BC", "energy", **_TD3, target=_mcetm(lambda config: config.td3)),
    "mobile": Recipe("MOBILE", "regressor", **_sac(), target=_mobile),
    "mopo": Recipe(
        "MOPO",
        "regressor",
        **_sac(),
        target=lambda config, log: MOPO(config.penalty),
        uncertainty="spread",
    ),
    "morel": Recipe("MOReL", "disagreement", **_sac(), target=_morel),
    "empo": _empo("EMPO"),
    "empo-official": _empo("EMPO as published"),
    "rambo": Recipe(
        "RAMBO",
        "regressor",
        **_sac(),
        target=lambda config, log: Plain(entropy_backup=True),
        adversarial=lambda config: Adversarial(
            config.adversarial, updates=config.rollout.every, horizon=config.rollout.horizon
        ),
        clones=True,
    ),
    "combo": Recipe("COMBO", "regressor", **_sac(_conservative), target=lambda config, log: Plain()),
    "cql": Recipe("CQL", "log", **_sac(_conservative), target=lambda config, log: Plain()),
    "edac": Recipe(
        "EDAC",
        "log",
        **_sac(lambda config: Diverse(config.diversity)),
        target=lambda config, log: Plain(entropy_backup=True),
    ),
    "td3bc": Recipe("TD3+BC", "log", **_TD3, target=lambda config, log: Plain()),
    "iql": Recipe(
        "IQL",
        "log",
        settings=lambda config: config.iql,
        learner=lambda config, *arguments, **more: IQL.init(config.iql, *arguments, **more),
        target=lambda config, log: Plain(),
        reward_scale=reward_scale,
    ),
    "bc": Recipe("behaviour cloning", "log", settings=lambda config: config.bc),
}

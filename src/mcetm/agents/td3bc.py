"""TD3+BC (Fujimoto and Gu, 2021) on the log alone; what learns is `agents/td3.py`."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal

from mcetm.agents.algorithm import Algorithm
from mcetm.agents.learner import Learner, Spaces
from mcetm.agents.td3 import TD3
from mcetm.nn.mlp import NetworkFactory
from mcetm.settings import settings


@settings
class TD3BC(Algorithm):
    """TD3+BC: ordinary targets on the log alone, and an actor that stays near the log's actions."""

    label: ClassVar[str] = "TD3+BC"

    name: Literal["td3bc"] = "td3bc"
    """Its name in files and on the command line."""
    learner: TD3 = field(default_factory=TD3)
    """A deterministic actor and two critics."""

    def make_learner(self, spaces: Spaces, *, network: NetworkFactory | None = None, key: Any) -> Learner:
        """Fresh networks."""
        return self.learner.init(spaces, network=network, key=key)

    @property
    def updates(self) -> int:
        """How many updates it makes."""
        return self.learner.steps

"""COMBO (Yu et al., 2021): CQL on a mixture of recorded and imagined transitions.

Values are pushed down at all states, and up on recorded transitions only; there is no other penalty.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Literal

from mcetm.agents.algorithm import ModelBased
from mcetm.agents.cql import Conservative
from mcetm.agents.sac import Regulariser
from mcetm.settings import settings


@settings
class COMBO(ModelBased):
    """COMBO: conservative values in rollouts of a model, without asking how uncertain the model is."""

    label: ClassVar[str] = "COMBO"

    name: Literal["combo"] = "combo"
    """Its name in files and on the command line."""
    conservative: Conservative = field(default_factory=Conservative)
    """How values of unknown actions are pushed down."""

    @property
    def regulariser(self) -> Regulariser:
        """The conservative term."""
        return self.conservative

"""What an algorithm is: its settings, and the few places where it differs from the others.

A subclass is one file with one class. It says which learner it has and, where it is different, what a critic
learns (`target`), what it looks at in an imagined step (`view`), and what is added to the critics' loss
(`regulariser`). Everything else is shared.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.agents.learner import Learner, Spaces
from mcetm.agents.rollout import Experience, RolloutSettings
from mcetm.agents.sac import SAC, Regulariser
from mcetm.agents.targets import bellman_target, estimate_value_floor
from mcetm.data.transitions import Transitions
from mcetm.dynamics.model import ModelSettings, TransitionModel
from mcetm.dynamics.world import View
from mcetm.errors import UserError
from mcetm.nn.mlp import NetworkFactory
from mcetm.settings import Number, Positive, settings
from mcetm.training.batches import Batch

if TYPE_CHECKING:
    from mcetm.agents.bc import BC
    from mcetm.agents.fit import Agent
    from mcetm.agents.rambo import Adversarial


@settings
class Algorithm:
    """What all have in common."""

    trains_agents: ClassVar[bool] = True
    label: ClassVar[str] = "algorithm"
    """How tables and figures call it."""
    model_based: ClassVar[bool] = False
    """Whether it imagines in a world."""
    needs_energy: ClassVar[bool] = False
    """Whether its world must have energies."""
    needs_density: ClassVar[bool] = False
    """Whether members of its model must know the density of a next state."""
    entropy_backup: ClassVar[bool] = False
    """Whether targets carry the entropy bonus."""

    clones_only: ClassVar[bool] = False
    """Whether it only clones the log's actions."""

    def fit(self, train: Transitions, **more: Any) -> Agent:
        """The trained agent; see `mcetm.agents.fit_agent` for what it takes."""
        from mcetm.agents.fit import fit_agent

        return fit_agent(self, train, **more)

    @property
    def cloning(self) -> BC | None:
        """How actors are cloned from the log before they learn, where they are."""
        return None

    def make_learner(self, spaces: Spaces, *, network: NetworkFactory | None = None, key: Any) -> Learner:
        """A fresh learner; `network` makes its networks, where they are not ours."""
        raise TypeError(f"{type(self).__name__} has no learner")

    def on(self, log: Transitions) -> Algorithm:
        """The same with what it takes from a log."""
        return self

    def check_members(self, model: ModelSettings | TransitionModel) -> None:
        """Refuse a model that cannot tell this algorithm where to stop."""

    @property
    def updates(self) -> int:
        """How many updates it makes."""
        return self.steps  # pyright: ignore[reportAttributeAccessIssue]

    def reward_scale(self, log: Transitions) -> float:
        """What rewards are multiplied by."""
        return 1.0

    def target(
        self, learner: Learner, row: Experience, value: Float[Array, ""], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Array]]:
        """The target of one imagined transition whose next state is worth `value`, and metrics."""
        return bellman_target(row.after.reward, row.after.terminated, value, learner.config.discount), {}

    def least(self, target: Float[Array, ""]) -> Float[Array, ""]:
        """A target, or the least that the algorithm allows."""
        return target

    def real_target(self, learner: Learner, row: Batch, value: Float[Array, ""]) -> Float[Array, ""]:
        """The target of one recorded transition: it did happen, so nothing is penalised."""
        return self.least(bellman_target(row.reward, row.terminated, value, learner.config.discount))


@settings
class OnSAC(Algorithm):
    """An algorithm whose learner is soft actor-critic."""

    learner: SAC = field(default_factory=SAC)
    """Soft actor-critic."""

    @property
    def regulariser(self) -> Regulariser | None:
        """What is added to the loss of the critics."""
        return None

    def make_learner(self, spaces: Spaces, *, network: NetworkFactory | None = None, key: Any) -> Learner:
        """Fresh networks."""
        return self.learner.init(spaces, regulariser=self.regulariser, network=network, key=key)

    @property
    def updates(self) -> int:
        """How many updates it makes."""
        return self.learner.steps


@settings
class ModelBased(OnSAC):
    """An algorithm that learns from rollouts in a world."""

    model_based: ClassVar[bool] = True

    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    """How much is imagined, and how long it is kept."""
    samples: Positive = 1
    """N, next states of each member. One is the one that rollouts go on with."""

    @property
    def view(self) -> View:
        """What it looks at in an imagined step."""
        return View(samples=self.samples, tested="nothing")

    def check_members(self, model: ModelSettings | TransitionModel) -> None:
        """Refuse a single member where what members disagree on is cut off: all would be trusted."""
        tested = self.view.tested
        asked = tested == "disagreement" or (tested == "next-state" and not model.has_energy)
        if asked and model.num_members == 1:
            raise UserError(
                f"{self.label} stops where the members of a model do not agree, and this model has a single "
                "one: give it more members."
            )

    @property
    def drops_untrusted(self) -> bool:
        """Whether an imagined step that is not trusted is left out, not only the last of its branch."""
        return False

    @property
    def needs_reference(self) -> bool:
        """Whether targets ask for the spread of values over the log's own pairs."""
        return False

    @property
    def adversary(self) -> Adversarial | None:
        """What changes a seed's own model between generations."""
        return None


@settings
class WithFloor(ModelBased):
    """A model-based algorithm whose targets have a floor."""

    value_floor: Number | None = None
    """The least target; None estimates it from the log's rewards."""

    def on(self, log: Transitions) -> Algorithm:
        """With the floor of this log."""
        if self.value_floor is not None:
            return self
        return replace(self, value_floor=estimate_value_floor(log, self.learner.discount))

    @property
    def floor(self) -> float:
        """The floor, once it is known."""
        assert self.value_floor is not None, "`on` a log first"  # noqa: S101
        return self.value_floor

    def least(self, target: Float[Array, ""]) -> Float[Array, ""]:
        """A target, or the floor."""
        return jnp.maximum(target, self.floor)

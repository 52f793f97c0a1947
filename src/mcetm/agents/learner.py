"""What learns: an actor and its critics. An algorithm is a learner, the targets it learns, and a model."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from mcetm.data.normalize import Statistics
from mcetm.nn.actor import Actor
from mcetm.training.metrics import Metrics


class Spaces(NamedTuple):
    """Observations and actions as networks see them."""

    statistics: Statistics
    """Of the log."""
    low: Float[Array, " action"]
    high: Float[Array, " action"]
    """Bounds of actions."""


class Minibatch(eqx.Module):
    """Rows of the log first, imagined ones after them."""

    obs: Float[Array, "rows obs"]
    action: Float[Array, "rows action"]
    next_obs: Float[Array, "rows obs"]
    real: int = eqx.field(static=True)
    """How many rows come from the log."""


@runtime_checkable
class Learner(Protocol):
    """Its state is all that learning changes; one update is `prepare`, the targets, then `improve`."""

    @property
    def actor(self) -> Actor:
        """The policy."""
        ...

    @property
    def critics(self) -> Any:
        """Q, of several networks."""
        ...

    @property
    def done(self) -> Float[Array, ""]:
        """Updates so far."""
        ...

    @property
    def config(self) -> Any:
        """Settings, with at least `batch_size`, `discount` and `steps`."""
        ...

    @property
    def period(self) -> int:
        """How many kinds of update take turns: 1 where all are alike."""
        ...

    def act(self, obs: Float[Array, " obs"], *, key: PRNGKeyArray) -> Float[Array, " action"]:
        """An action for a rollout."""
        ...

    def prepare(self, batch: Minibatch, *, key: PRNGKeyArray) -> tuple[Learner, Metrics]:
        """Whatever is updated before the targets are taken, and metrics."""
        ...

    def next_value(
        self, obs: Float[Array, " obs"], *, key: PRNGKeyArray, entropy: bool = False
    ) -> Float[Array, ""]:
        """What a next state is worth in a target."""
        ...

    def improve(
        self, batch: Minibatch, target: Float[Array, " rows"], *, key: PRNGKeyArray, turn: int = 0
    ) -> tuple[Learner, Metrics]:
        """Update the critics towards these targets, and the rest; `turn`: its number modulo `period`."""
        ...

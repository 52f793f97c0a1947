"""A model of the world: next states, their reward and their end, and where not to trust them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.dynamics.calibrate import Rule, Threshold
from mcetm.dynamics.reward import LearnedTermination
from mcetm.dynamics.samples import Samples

Uncertainty = Literal["spread", "deviation", "members", "none"]


@runtime_checkable
class TransitionModel(Protocol):
    """Anything that draws N next states from each of its M members."""

    def samples(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], count: int, *, key: PRNGKeyArray
    ) -> Samples:
        """M × N next states with their energies."""
        ...


class Imagined(eqx.Module):
    """One imagined step: the next state it goes on with, and all that were drawn beside it."""

    next_obs: Float[Array, " obs"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    """Whether the rollout stops here because the model is not to be trusted."""
    candidates: Float[Array, "members samples obs"]
    ended: Bool[Array, "members samples"]
    """Which candidates end the task."""
    distrusted: Bool[Array, "members samples"]
    """ν: which candidates exceed the threshold of their member."""
    uncertainty: Float[Array, ""]


class World(eqx.Module):
    """Transition model, reward model, termination rule and threshold as one."""

    model: TransitionModel
    reward: Callable[[Any, Any, Any], Any]
    termination: LearnedTermination | Callable[[Any], Any] | None = None
    """A rule on raw next states, a learned classifier, or none."""
    threshold: Threshold | None = None
    count: int = eqx.field(static=True, default=10)
    """N, the samples of each member."""
    rollout_rule: Rule = eqx.field(static=True, default="minimum")
    """When a rollout stops."""
    target_rule: Rule = eqx.field(static=True, default="per-sample")
    """Which candidates a target cuts off."""
    uncertainty: Uncertainty = eqx.field(static=True, default="none")
    """MOPO's penalty: the largest `spread` of a member, or the largest `deviation` of a member's mean;
    EMPO's: the spread over `members` of one sample each."""

    def imagine(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], *, key: PRNGKeyArray
    ) -> Imagined:
        """Take one step."""
        draw_key, member_key, sample_key = jax.random.split(key, 3)
        drawn = self.model.samples(obs, action, self.count, key=draw_key)
        members, samples = drawn.next_obs.shape[:2]
        i = jax.random.randint(member_key, (), 0, members)
        j = jax.random.randint(sample_key, (), 0, samples)
        distrusted = truncated = jnp.zeros((members, samples), bool)
        if self.threshold is not None:
            level = self.threshold.level(self.model, obs, action)  # pyright: ignore[reportArgumentType]
            distrusted = self.threshold.exceeded(drawn, self.target_rule, level=level, selected=(i, j))
            truncated = self.threshold.exceeded(drawn, self.rollout_rule, level=level, selected=(i, j))
        ended = jax.vmap(jax.vmap(lambda s: self.ends(obs, action, s)))(drawn.next_obs)
        return Imagined(
            next_obs=drawn.next_obs[i, j],
            reward=self.reward(obs, action, drawn.next_obs[i, j]),
            terminated=ended[i, j],
            truncated=truncated[i, j],
            candidates=drawn.next_obs,
            ended=ended,
            distrusted=distrusted,
            uncertainty=self._uncertainty(obs, action, drawn),
        )

    def ends(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Bool[Array, ""]:
        """Whether the task ends with this transition."""
        if self.termination is None:
            return jnp.zeros((), bool)
        if isinstance(self.termination, LearnedTermination):
            return self.termination(obs, action, next_obs)
        return self.termination(next_obs)

    def _uncertainty(self, obs: Array, action: Array, drawn: Samples) -> Float[Array, ""]:
        if self.uncertainty == "none":
            return jnp.zeros(())
        if self.uncertainty == "deviation":
            means = drawn.next_obs.mean(axis=1)
            return jnp.linalg.norm(means - means.mean(axis=0), axis=-1).max()
        if self.uncertainty == "members":
            return jnp.linalg.norm(drawn.next_obs[:, 0].std(axis=0))
        known = getattr(self.model, "spread", None)
        spread = drawn.next_obs.std(axis=1, ddof=1) if known is None else known(obs, action)
        return jnp.linalg.norm(spread, axis=-1).max()

"""A model of the world: next states, their reward and their end, and where not to trust them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mcetm.data.transitions import Transitions
from mcetm.dynamics.calibrate import CalibrationSettings, Rule
from mcetm.dynamics.model import Samples, Stages, TransitionModel, no_stages, part_keys
from mcetm.dynamics.reward import HeadSettings, TerminationRule, fit_reward, fit_termination
from mcetm.dynamics.trust import Tested, TrustRegion
from mcetm.files import Folders
from mcetm.settings import settings
from mcetm.tasks.registry import Task, get_task

Uncertainty = Literal["spread", "deviation", "members", "none"]


@settings
class WorldSettings:
    """What makes a world of a transition model."""

    reward: HeadSettings = field(default_factory=HeadSettings)
    """The networks that predict rewards and, where they are learned, terminations."""
    termination: Literal["auto", "learned", "none"] = "auto"
    """auto: the task's own rule; without a task learned, if the log has terminations."""
    calibration: CalibrationSettings = field(default_factory=lambda: CalibrationSettings(quantile=0.999))
    """How the limits of the trust region are found."""


@dataclass(frozen=True)
class View:
    """What an algorithm looks at in an imagined step."""

    samples: int = 10
    """N, next states of each member."""
    tested: Tested = "next-state"
    """What a step is cut off by, if the world has a trust region."""
    rollout_rule: Rule = "minimum"
    """When a rollout stops."""
    target_rule: Rule = "per-sample"
    """Which candidates a target cuts off."""
    uncertainty: Uncertainty = "none"
    """MOPO's penalty: the largest `spread` of a member, or the largest `deviation` of a member's mean;
    EMPO's: the spread over `members` of one sample each."""


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
    """ν: which candidates lie outside the trust region."""
    uncertainty: Float[Array, ""]


class World(eqx.Module):
    """Transition model, reward, termination and trust region as one."""

    model: TransitionModel
    reward: Callable[[Any, Any, Any], Any]
    termination: Callable[[Any, Any, Any], Any] | None = None
    """Whether the task ends with (s, a, s'); None where it never does."""
    trust: TrustRegion | None = None
    """None trusts everything."""

    @classmethod
    def of(
        cls,
        model: TransitionModel,
        train: Transitions,
        *,
        holdout: Transitions,
        config: WorldSettings | None = None,
        task: Task | None = None,
        seed: int = 0,
        folder: Path | Folders | None = None,
        stages: Stages = no_stages,
    ) -> World:
        """A world around a trained model: reward and termination are learned, trust is calibrated.

        **Arguments:**

        - `model`: a trained transition model, such as `mcetm.fit` returns.
        - `train`, `holdout`: what it was trained on, and held-out episodes for stopping and calibration.
        - `task`: whose rule ends episodes; by default the one the log belongs to.
        - `config`: sizes of the networks, and how the limits of the trust region are found.
        - `seed`: of everything that is random.
        - `folder`: where checkpoints and metrics are kept; None writes nothing.
        - `stages`: called with the name of each part, around its training.
        """
        config = config or WorldSettings()
        keys = part_keys(seed)
        place = lambda name: None if folder is None else folder / name  # noqa: E731
        with stages("reward"):
            reward, _ = fit_reward(train, holdout, config.reward, key=keys.reward, folder=place("reward"))
        termination: Any = None
        if task is None and train.metadata.task is not None:
            task = get_task(train.metadata.task)
        if config.termination == "auto" and task is not None:
            termination = None if task.termination is None else TerminationRule(task.termination)
        elif config.termination != "none" and train.terminated.any():
            with stages("termination"):
                termination, _ = fit_termination(
                    train, holdout, config.reward, key=keys.termination, folder=place("termination")
                )
        with stages("calibration"):
            trust = TrustRegion.of(model, holdout, config.calibration, key=keys.calibration)
        return cls(model, reward, termination, trust)

    def imagine(
        self,
        obs: Float[Array, " obs"],
        action: Float[Array, " action"],
        view: View | None = None,
        *,
        key: PRNGKeyArray,
    ) -> Imagined:
        """Take one step."""
        view = view or View()
        draw_key, member_key, sample_key = jax.random.split(key, 3)
        drawn = self.model.draw(obs, action, view.samples, key=draw_key)
        members, samples = drawn.next_obs.shape[:2]
        i = jax.random.randint(member_key, (), 0, members)
        j = jax.random.randint(sample_key, (), 0, samples)
        distrusted = truncated = jnp.zeros((members, samples), bool)
        if self.trust is not None:
            rules = view.target_rule, view.rollout_rule
            distrusted, truncated = self.trust.outside(
                self.model, obs, action, drawn, rules, tested=view.tested, selected=(i, j), key=draw_key
            )
        ended = jax.vmap(jax.vmap(lambda s: self.ends(obs, action, s)))(drawn.next_obs)
        return Imagined(
            next_obs=drawn.next_obs[i, j],
            reward=self.reward(obs, action, drawn.next_obs[i, j]),
            terminated=ended[i, j],
            truncated=truncated[i, j],
            candidates=drawn.next_obs,
            ended=ended,
            distrusted=distrusted,
            uncertainty=self._uncertainty(obs, action, drawn, view.uncertainty, key=draw_key),
        )

    def ends(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Bool[Array, ""]:
        """Whether the task ends with this transition."""
        return jnp.zeros((), bool) if self.termination is None else self.termination(obs, action, next_obs)

    def _uncertainty(
        self, obs: Array, action: Array, drawn: Samples, kind: Uncertainty, *, key: PRNGKeyArray
    ) -> Float[Array, ""]:
        if kind == "none":
            return jnp.zeros(())
        if kind == "deviation":
            return drawn.deviation
        if kind == "members":
            return drawn.member_spread
        return jnp.linalg.norm(self.model.spreads(obs, action, key=key), axis=-1).max()

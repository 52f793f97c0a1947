"""A model of the world: next states, their reward and their end, and where not to trust them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray

from mcetm.arguments import require, whole
from mcetm.console import say
from mcetm.data.normalize import Statistics
from mcetm.data.transitions import Transitions
from mcetm.dynamics.batching import batched, over_batch
from mcetm.dynamics.calibrate import CalibrationSettings, Rule
from mcetm.dynamics.model import Samples, Stages, TransitionModel, no_stages, part_keys
from mcetm.dynamics.pairs import PairSettings, fit_pairs
from mcetm.dynamics.reward import HeadSettings, TerminationRule, fit_reward, fit_termination
from mcetm.dynamics.trust import Tested, TrustRegion
from mcetm.errors import UserError
from mcetm.files import Folders
from mcetm.nn.scaling import Scaling
from mcetm.settings import settings
from mcetm.tasks.registry import Task, get_task

Uncertainty = Literal["spread", "deviation", "members", "none"]


@settings
class WorldSettings:
    """How a world is made around a transition model: its reward, its end, its trust region."""

    reward: HeadSettings = field(default_factory=HeadSettings)
    """The networks that predict rewards and, where they are learned, terminations."""
    termination: Literal["auto", "learned", "none"] = "auto"
    """auto: the task's own rule; without one learned, if the log has terminations. none: the task never ends,
    which a log with terminations contradicts."""
    calibration: CalibrationSettings = field(default_factory=lambda: CalibrationSettings(quantile=0.999))
    """How the limits on energies and on disagreement are found."""
    pairs: PairSettings | None = field(default_factory=PairSettings)
    """How pairs (s, a) are scored, and where their limit lies; null takes the disagreement of members."""


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
    choice: float | None = None
    """A rollout goes on with a sample of a member, chosen by softmax(−E / choice); None: any."""
    uncertainty: Uncertainty = "none"
    """MOPO's penalty: the largest `spread` of a member, or the largest `deviation` of a member's mean;
    EMPO's: the spread over `members` of one sample each."""
    surprise: bool = False
    """Whether it asks how surprising the pair is."""


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
    surprise: Float[Array, ""] | None = None
    """How surprising the pair is, where that is asked for: 1 on average over fresh pairs of the log."""


class World(eqx.Module):
    """Transition model, reward, termination and trust region as one."""

    model: TransitionModel
    reward: Callable[[Any, Any, Any], Any]
    termination: Callable[[Any, Any, Any], Any] | None = None
    """Whether the task ends with (s, a, s'); None where it never does."""
    trust: TrustRegion | None = None
    """None trusts everything."""
    change: Scaling | None = None
    """The scale of one step's changes in the log, which errors are told in."""

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
        require("model", model, "a trained transition model, such as mcetm.fit returns", TransitionModel)
        require("train", train, "a log (Transitions)", Transitions)
        require("holdout", holdout, "a log (Transitions)", Transitions)
        require("config", config, "WorldSettings", WorldSettings, NoneType)
        require("task", task, "a Task, such as mcetm.get_task returns", Task, NoneType)
        require("folder", folder, "a folder (pathlib.Path)", Path, Folders, NoneType)
        whole("seed", seed)
        _check_widths(model, train, holdout)
        config, holdout = config or WorldSettings(), holdout.excerpt()
        if config.pairs is None and model.num_members == 1 and not model.has_energy:
            raise UserError(
                "A model of one member without energies cannot say where it is to be trusted: leave "
                "'world.pairs' as it is, or give the model more members."
            )
        keys = part_keys(seed)
        place = lambda name: None if folder is None else folder / name  # noqa: E731
        with stages("reward"):
            reward, _ = fit_reward(train, holdout, config.reward, key=keys.reward, folder=place("reward"))
        termination: Any = None
        if task is None and train.metadata.task is not None:
            task = get_task(train.metadata.task)
        ends = int(train.terminated.sum()) + int(holdout.terminated.sum())
        if config.termination == "auto" and task is not None and task.termination is not None:
            termination = TerminationRule(task.termination)
        elif ends:
            _check_ends(train, ends, config.termination)
            if config.termination == "auto" and task is not None:
                say(
                    f"The task '{task.name}' has no rule for its end (termination=), and the log has "
                    f"{ends:,} terminations: a rule is learned from them."
                )
            with stages("termination"):
                termination, _ = fit_termination(
                    train, holdout, config.reward, key=keys.termination, folder=place("termination")
                )
        pairs = None
        if config.pairs is not None:
            with stages("pairs"):
                pairs = fit_pairs(
                    train.excerpt(), holdout, config.pairs, key=keys.pairs, folder=place("pairs")
                )
        with stages("calibration"):
            trust = TrustRegion.of(model, holdout, config.calibration, pairs=pairs, key=keys.calibration)
        return cls(model, reward, termination, trust, Scaling.of(Statistics.of(train).change))

    @property
    def widths(self) -> tuple[int, int] | None:
        """Of observations and actions, where the model knows them."""
        return self.model.widths

    def pair_score(
        self, obs: ArrayLike, action: ArrayLike, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch"]:
        """How unlike the log each pair is, for any leading batch axes; `trust.pair_limit` is the limit."""
        if self.trust is None:
            raise UserError("This world has no trust region, so pairs have no score.")
        return over_batch(_pair_score, self, (obs, action), key=key)

    def expected_error(
        self, obs: ArrayLike, action: ArrayLike, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch"]:
        """The error to expect of a prediction, in spreads of one step's changes, for any leading batch axes.

        √(σ² + d²), root mean square over components: what the members expect and how far they lie apart,
        and d² the squared distance from the manifold of pairs, as far as it is beyond that of the log's own.
        A model's own doubts may fall far from the data; the distance does not.
        """
        return over_batch(_expected_error, self, (obs, action), key=key)

    @batched
    def imagine(
        self,
        obs: Float[Array, " obs"],
        action: Float[Array, " action"],
        view: View | None = None,
        *,
        key: PRNGKeyArray,
    ) -> Imagined:
        """Take one step, for any leading batch axes."""
        view = view or View()
        draw_key, member_key, sample_key = jax.random.split(key, 3)
        drawn = self.model.draw(obs, action, view.samples, key=draw_key)
        members, samples = drawn.next_obs.shape[:2]
        i = jax.random.randint(member_key, (), 0, members)
        j = jax.random.randint(sample_key, (), 0, samples)
        if view.choice is not None and drawn.energy is not None:
            j = jax.random.categorical(sample_key, -drawn.energy[i] / view.choice)
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
            surprise=self._surprise(obs, action) if view.surprise else None,
        )

    @functools.partial(batched, arrays=3)
    def ends(
        self, obs: Float[Array, " obs"], action: Float[Array, " action"], next_obs: Float[Array, " obs"]
    ) -> Bool[Array, ""]:
        """Whether the task ends with this transition, for any leading batch axes."""
        return jnp.zeros((), bool) if self.termination is None else self.termination(obs, action, next_obs)

    def _surprise(self, obs: Array, action: Array) -> Float[Array, ""]:
        pairs = None if self.trust is None else self.trust.pairs
        if pairs is None:
            raise UserError("This world has no score of pairs, so none is surprising (world.pairs).")
        return pairs.surprise(pairs(obs, action))

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


def _check_widths(model: TransitionModel, *logs: Transitions) -> None:
    """Refuse a log of other observations or actions than the model's."""
    for log in logs:
        if model.widths is not None and model.widths != (log.obs_dim, log.action_dim):
            obs, action = model.widths
            raise UserError(
                f"The model is of states of {obs} and actions of {action} numbers, and "
                f"{log.metadata.source} has {log.obs_dim} and {log.action_dim}."
            )


def _check_ends(train: Transitions, ends: int, termination: str) -> None:
    """Refuse a world in which a task that ends in the log would go on for ever."""
    if termination == "none":
        raise UserError(
            f"The log has {ends:,} terminations, and with world.termination=none nothing imagined would ever "
            "end; set it to auto or learned."
        )
    if not train.terminated.any():
        raise UserError(
            f"All {ends:,} terminations of the log are in held-out episodes, so that no rule for the end can "
            "be learned from the others; take another seed, a smaller hold-out, or a task with a rule."
        )


def _pair_score(world: World, obs: Array, action: Array, *, key: PRNGKeyArray) -> Float[Array, ""]:
    trust = cast(TrustRegion, world.trust)
    return trust.pair_score(world.model, obs, action, key=key)


def _expected_error(world: World, obs: Array, action: Array, *, key: PRNGKeyArray) -> Float[Array, ""]:
    spread = world.model.total_spread(obs, action, key=key)
    spread = spread if world.change is None else spread / world.change.std
    trust, beyond = world.trust, jnp.zeros(())
    if trust is not None and trust.pairs is not None:
        beyond = jnp.maximum(0.0, trust.pairs.distance(obs, action) - trust.pairs.reach)
    return jnp.sqrt((spread**2).mean() + beyond**2)

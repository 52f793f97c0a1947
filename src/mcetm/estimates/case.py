"""What all estimators of one log share: policies, held-out episodes, the world, imagined episodes."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from mcetm.console import one_line
from mcetm.data.transitions import Transitions
from mcetm.dynamics.gaussian import GaussianEnsemble
from mcetm.dynamics.world import World, WorldSettings
from mcetm.estimates.asked import Asked
from mcetm.estimates.doubly_robust import DoublyRobustSettings
from mcetm.estimates.estimate import Estimate, Estimator
from mcetm.estimates.fitted_q import FQESettings
from mcetm.estimates.model_based import ModelBasedSettings, Rollouts
from mcetm.estimates.quantity import Quantity
from mcetm.estimates.rewards import RewardRange
from mcetm.estimates.verdicts import Evidence, ReturnScale, VerdictSettings, believe
from mcetm.evaluation.detection import spearman
from mcetm.settings import Fraction, settings, to_plain

_NAME = 2000
"""Characters of a name that a file keeps."""
_ROWS = 4096
"""Held-out rewards at most that the world's are compared with."""


@settings
class EstimateSettings:
    """How returns are estimated without a simulator."""

    estimators: Annotated[tuple[Estimator, ...], Field(min_length=1)] = ("fqe", "model", "doubly-robust")
    """Which estimators are asked."""
    discount: Annotated[float, Field(strict=True, gt=0.0, le=1.0)] = 1.0
    """γ: 1 is the undiscounted return, the scale of the log's episode returns."""
    horizon: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    """Steps of an episode at most. None: the task's limit, or the longest episode of the log."""
    holdout: Fraction = 0.1
    """Share of episodes that critics and models are checked on."""
    verdict: VerdictSettings = field(default_factory=VerdictSettings)
    """When an estimate is believed."""
    fqe: FQESettings = field(default_factory=FQESettings)
    """Fitted Q evaluation."""
    model_based: ModelBasedSettings = field(default_factory=ModelBasedSettings)
    """The model-based estimate."""
    doubly_robust: DoublyRobustSettings = field(default_factory=DoublyRobustSettings)
    """The doubly robust estimate."""
    model: GaussianEnsemble = field(
        default_factory=lambda: GaussianEnsemble(members=5, elites=5, bootstrap=True)
    )
    """The transition model that is trained where no world is given. It is not the one that a policy was
    trained in: a policy goes where its own model errs in its favour."""
    world: WorldSettings = field(default_factory=WorldSettings)
    """Reward, termination and trust region around it."""

    def __post_init__(self) -> None:
        if twice := next((n for i, n in enumerate(self.estimators) if n in self.estimators[:i]), None):
            raise ValueError(f"names the estimator {twice!r} twice")


@dataclass(frozen=True)
class Question:
    """A policy, and what is known of it before any estimator is asked."""

    policy: Asked
    inside: float | None
    """Share of held-out states in which its action is inside the trust region; None without one."""
    surprise: float | None
    """How surprising its actions are there, on average; the log's own have 1. None without a pair score."""
    rollouts: Rollouts
    """Its imagined episodes."""

    @property
    def outside(self) -> float:
        """Share of its imagined steps that lie outside the trust region."""
        return float(self.rollouts.outside.mean())


@dataclass(frozen=True)
class Case:
    """All that estimators share."""

    log: Transitions
    held: np.ndarray
    """Which episodes are held out."""
    quantity: Quantity
    scale: ReturnScale
    settings: EstimateSettings
    world: World
    bounds: RewardRange
    """The range of the log's rewards."""
    questions: tuple[Question, ...]
    following: tuple[np.ndarray, np.ndarray] | None
    """Each policy's actions at the next states of the log, and which there are; None where not needed."""
    seed: int

    @property
    def next_actions(self) -> tuple[np.ndarray, np.ndarray]:
        """What `following` holds, for estimators that need it."""
        assert self.following is not None  # noqa: S101 (an estimator that needs them has them)
        return self.following

    @functools.cached_property
    def held_out(self) -> Transitions:
        """Held-out episodes; the whole log where it is a single one."""
        return held_out_of(self.log, self.held)

    @functools.cached_property
    def rewards(self) -> float | None:
        """Rank correlation of held-out rewards and those that the world predicts; None if they do not vary.

        Steps that end the task are left out: they are few, and their rewards may be of another size.
        """
        rows = np.flatnonzero(~self.held_out.terminated)
        rows = np.random.default_rng(self.seed).permutation(rows)[:_ROWS]
        reward = self.held_out.reward[rows].astype(np.float64)
        if len(rows) < 2 or reward.std() <= 1e-6 * np.abs(reward).max():
            return None
        given = (getattr(self.held_out, name)[rows] for name in ("obs", "action", "next_obs"))
        predicted = np.asarray(jax.vmap(self.world.reward)(*map(jnp.asarray, given)), np.float64)
        return spearman(predicted, reward) if predicted.std() > 0 else 0.0

    def unknown(self, one: Question) -> float:
        """What an episode may earn otherwise than estimated where nothing in the log is like it."""
        return self.scale.stake * one.outside

    def believe(self, one: Question, missing: float | None, interval: list[float]) -> tuple[bool, list[str]]:
        """Whether an estimate is believed, and why: `missing` is what it is known to be wrong by."""
        steps = None if self.world.trust is None else 1.0 - one.outside
        half = 0.5 * (interval[1] - interval[0])
        evidence = Evidence(one.inside, steps, missing, half, self.rewards, one.surprise)
        return believe(evidence, self.scale, self.settings.verdict)

    def estimate(
        self,
        estimator: Estimator,
        one: Question,
        value: float | None,
        interval: list[float] | None,
        verdict: tuple[bool, list[str]],
        details: dict[str, float],
        own: Any,
    ) -> Estimate:
        """An estimate of this case; no interval goes beyond what the log's rewards allow."""
        if value is not None and interval is not None:
            least, most = self.bounds.worth(float(self.quantity.lengths[-1]))
            interval = [min(max(interval[0], least), value), max(min(interval[1], most), value)]
        return Estimate(
            estimator=estimator,
            policy=one_line(one.policy.name, _NAME),
            value=value,
            interval=interval,
            believed=verdict[0],
            reasons=verdict[1],
            quantity=self.quantity.words,
            horizon=self.quantity.horizon,
            discount=self.quantity.discount,
            log=one_line(self.log.metadata.source, _NAME),
            log_checksum=self.log.checksum,
            log_return=self.scale.mean,
            log_spread=self.scale.spread,
            details=details,
            settings={**to_plain(own), "seed": self.seed, "verdict": to_plain(self.settings.verdict)},
        )


def held_out_of(log: Transitions, held: np.ndarray) -> Transitions:
    """These episodes; the whole log where there are none."""
    return log.select_episodes(np.flatnonzero(held)) if held.any() else log


def known(**numbers: float | None) -> dict[str, float]:
    """Those numbers that there are."""
    return {name: value for name, value in numbers.items() if value is not None}

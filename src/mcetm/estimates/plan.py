"""A plan for real episodes: it begins with estimates, and each measured return changes what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from mcetm.documents import Finite, Record, Text, read_json
from mcetm.errors import UserError
from mcetm.estimates.choice import Candidate
from mcetm.estimates.estimate import IMAGINED
from mcetm.evaluation.budget import Beliefs
from mcetm.files import write_json
from mcetm.tasks.registry import suggestion

MOST_EPISODES = 10_000
"""Real episodes beyond this are a slip of the keyboard."""
_Z = 1.645
"""Half a 90 % interval, in standard deviations."""


_LARGEST, _LEAST = 1e30, 1e-30
"""Squares of returns and spreads must stay numbers."""
_Return = Annotated[Finite, Field(ge=-_LARGEST, le=_LARGEST)]
_Spread = Annotated[Finite, Field(ge=_LEAST, le=_LARGEST)]


class Prior(Record):
    """What a policy's estimate makes expect."""

    policy: Text
    mean: _Return
    spread: _Spread


class MeasuredReturn(Record):
    """The return of one real episode."""

    policy: Text
    value: _Return


class EpisodePlan(Record):
    """A plan for real episodes, and those that were run, as `plan.json` holds them."""

    format: Literal[1] = 1
    budget: Annotated[int, Field(ge=1, le=MOST_EPISODES)]
    noise: _Spread
    """How much episodes of one policy are expected to differ."""
    priors: Annotated[list[Prior], Field(min_length=1)]
    measured: list[MeasuredReturn] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits(self) -> EpisodePlan:
        if len(set(self.names)) < len(self.priors):
            raise ValueError("has a policy twice")
        for one in self.measured:
            if one.policy not in self.names:
                raise ValueError(f"has a return of {one.policy!r:.80}, which is no policy of it")
        if len(self.measured) > self.budget:
            raise ValueError("has more returns than it has episodes")
        return self

    @property
    def names(self) -> list[str]:
        """The policies."""
        return [prior.policy for prior in self.priors]

    @property
    def left(self) -> int:
        """Episodes that are left."""
        return self.budget - len(self.measured)

    @property
    def beliefs(self) -> Beliefs:
        """What is believed now."""
        mean, spread = (np.array([getattr(p, name) for p in self.priors]) for name in ("mean", "spread"))
        noted = [(self.names.index(one.policy), one.value) for one in self.measured]
        return Beliefs(mean, spread**2, self.noise).after(noted)

    @property
    def following(self) -> str | None:
        """The policy of the next episode; None where none is left."""
        return self.names[self.beliefs.following] if self.left else None

    @property
    def order(self) -> list[str]:
        """The policies of all episodes that are left, if each earns what is expected."""
        return [self.names[i] for i in self.beliefs.plan(self.left)]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, with what follows from it."""
        beliefs = self.beliefs
        return {
            **self.model_dump(),
            "next": self.following,
            "order": self.order,
            "deploy": self.names[beliefs.best],
            "beliefs": {
                name: {"mean": float(beliefs.mean[i]), "spread": float(np.sqrt(beliefs.variance[i]))}
                for i, name in enumerate(self.names)
            },
        }

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        write_json(path, self.model_dump())


def begin_plan(path: Path, found: Sequence[Candidate], budget: int | None) -> EpisodePlan:
    """The plan in this file, or a new one where there is none."""
    if path.exists():
        plan: EpisodePlan = read_json(path, EpisodePlan)
        if sorted(plan.names) != sorted(one.name for one in found):
            raise UserError(f"{path} holds a plan for other policies; choose another --out.")
        if budget is not None and budget != plan.budget:
            raise UserError(
                f"{path} holds a plan for {plan.budget} episodes, not {budget}; choose another --out."
            )
        return plan
    if budget is None:
        raise UserError(f"There is no plan in {path.parent} to add a return to; begin one with --budget N.")
    if not 1 <= budget <= MOST_EPISODES:
        raise UserError(f"A plan has at least 1 and at most {MOST_EPISODES:,} episodes, not {budget}.")
    return EpisodePlan(budget=budget, noise=noise_of(found), priors=[prior_of(one) for one in found])


def noise_of(found: Sequence[Candidate]) -> float:
    """How much episodes of one policy will differ: as imagined ones do, else as those of the log.

    The log may be of many policies, whose returns differ far more than those of one.
    """
    imagined = [e.details.get(IMAGINED) for one in found for e in one.estimates.of if e.estimator == "model"]
    known = [spread for spread in imagined if spread]
    spread = float(np.sqrt(np.mean(np.square(known)))) if known else found[0].estimates.of[0].log_spread
    return max(spread, 1e-9)


def prior_of(one: Candidate) -> Prior:
    """What to expect of a policy. An estimate that is not believed is worth little: its prior is wide."""
    first, chosen = one.estimates.of[0], one.estimates.chosen
    wide = max(first.log_spread, 1e-9)
    if chosen is None or chosen.value is None or chosen.interval is None:
        return Prior(policy=one.name, mean=first.log_return, spread=4.0 * wide)
    spread = 0.5 * (chosen.interval[1] - chosen.interval[0]) / _Z
    if not one.estimates.believed:
        spread = max(2.0 * spread, 2.0 * wide)
    return Prior(policy=one.name, mean=chosen.value, spread=max(spread, 1e-3 * wide))


def with_measured(plan: EpisodePlan, measured: Sequence[str]) -> EpisodePlan:
    """The plan with the returns of some episodes, each as `POLICY=RETURN`."""
    noted = list(plan.measured)
    for text in measured:
        name, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not sign or not np.isfinite(value) or abs(value) > _LARGEST:
            raise UserError(f"'{text}' is no return; write it as POLICY=RETURN.")
        if name not in plan.names:
            raise UserError(f"The plan has no policy '{name}'{suggestion(name, plan.names)}")
        noted.append(MeasuredReturn(policy=name, value=value))
        if len(noted) > plan.budget:
            raise UserError(f"All {plan.budget} episodes of the plan have been run.")
    return plan.model_copy(update={"measured": noted})

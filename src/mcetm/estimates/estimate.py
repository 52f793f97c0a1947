"""An estimate: a number, its interval, and whether it can be believed; kept in a file of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mcetm.documents import Checksum, Finite, Record, Text, read_json
from mcetm.files import write_json

Estimator = Literal["fqe", "model", "doubly-robust"]
LABELS: Mapping[str, str] = {
    "fqe": "fitted Q evaluation",
    "model": "model-based",
    "doubly-robust": "doubly robust",
}
"""How tables and figures call the estimators."""
CONFIDENCE = 0.9
"""Of every interval."""

IMAGINED = "spread_of_episodes"
"""What a model-based estimate calls how much its imagined episodes differ."""

_FORMAT = 1


class Estimate(Record):
    """What one estimator says of one policy, as its file holds it."""

    format: Literal[1] = _FORMAT
    estimator: Estimator
    """Which one it is from."""
    policy: Text
    """What the policy is called."""
    value: Finite | None
    """The estimated return; None where the estimator refused."""
    interval: Annotated[list[Finite], Field(min_length=2, max_length=2)] | None
    """Least and largest of 90 %."""
    believed: bool
    """Whether it can be believed."""
    reasons: list[Text]
    """Why, in words: what speaks against it, or what was looked at."""
    quantity: Text
    """What the number is."""
    horizon: Annotated[int, Field(ge=1)]
    """Steps of an episode at most."""
    discount: Annotated[float, Field(gt=0, le=1)]
    """γ: what a reward is worth one step later."""
    log: Text
    """The log that it was made from."""
    log_checksum: Checksum
    """Of that log."""
    log_return: Finite
    """The mean of the log's own episodes, in the same quantity."""
    log_spread: Annotated[Finite, Field(ge=0)]
    """How much these differ."""
    details: dict[Text, Finite]
    """What the estimator found on its way."""
    settings: dict[Text, Any]
    """What it was asked with."""

    @model_validator(mode="after")
    def _fits(self) -> Estimate:
        if (self.value is None) != (self.interval is None):
            raise ValueError("needs a value and an interval, or neither")
        if self.value is None and self.believed:
            raise ValueError("has no value that could be believed")
        if self.interval is not None and not self.interval[0] <= self.interval[1]:
            raise ValueError("has an interval whose ends are in the wrong order")
        return self

    @property
    def label(self) -> str:
        """How tables call the estimator."""
        return LABELS[self.estimator]

    def save(self, path: str | Path) -> None:
        """Write it as JSON, whole or not at all."""
        write_json(Path(path), self.model_dump())

    @staticmethod
    def load(path: str | Path) -> Estimate:
        """Read it back; what is not an estimate is refused in a sentence."""
        return read_json(Path(path), Estimate)


@dataclass(frozen=True)
class PolicyEstimates:
    """What all estimators say of one policy, beside each other and never averaged."""

    policy: str
    of: tuple[Estimate, ...]
    """One of each estimator that was asked."""

    @property
    def disagreement(self) -> str | None:
        """Which believed estimates cannot both be right, in words; None where none contradict."""
        good = [e for e in self.of if e.believed and e.interval is not None]
        for i, first in enumerate(good):
            for second in good[i + 1 :]:
                if apart(first, second):
                    return (
                        f"{first.label} says {_shown(first)}, and {second.label} says {_shown(second)}: "
                        "both cannot be right"
                    )
        return None

    @property
    def chosen(self) -> Estimate | None:
        """The one to go by: believed before not believed, then the shortest interval; None if all refused."""
        answered = [e for e in self.of if e.interval is not None]
        return min(answered, key=lambda e: (not e.believed, _width(e)), default=None)

    @property
    def believed(self) -> bool:
        """Whether there is an estimate to believe, and none of its kind contradicts it."""
        return any(e.believed for e in self.of) and self.disagreement is None

    @property
    def verdict(self) -> str:
        """What to think of it, in a sentence."""
        chosen = self.chosen
        if chosen is None:
            return "not believed: no estimator had an answer"
        if self.disagreement is not None:
            return f"not believed: {self.disagreement}"
        if chosen.believed:
            return f"believed: {chosen.label}"
        return f"not believed: {'; '.join(chosen.reasons)}"

    def __str__(self) -> str:
        rows = [f"  {e.label}: {_shown(e)}, {'' if e.believed else 'not '}believed" for e in self.of]
        return "\n".join([f"{self.policy}: {self.verdict}", *rows])

    def save(self, folder: str | Path, name: str | None = None) -> list[Path]:
        """Write each estimate into a file of its own, `NAME-ESTIMATOR.json`; the paths."""
        paths = [Path(folder) / f"{name or self.policy}-{e.estimator}.json" for e in self.of]
        for path, one in zip(paths, self.of, strict=True):
            one.save(path)
        return paths


@dataclass(frozen=True)
class Estimates:
    """What several policies would earn, estimated from one log."""

    of_policies: tuple[PolicyEstimates, ...]
    log: str
    log_return: float
    quantity: str

    def __str__(self) -> str:
        head = f"{self.quantity}; the log's own: {self.log_return:,.4g}"
        return "\n".join([head, *(str(found) for found in self.of_policies)])

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "quantity": self.quantity,
            "log": self.log,
            "log_return": self.log_return,
            "confidence": CONFIDENCE,
            "policies": {
                found.policy: {
                    "believed": found.believed,
                    "verdict": found.verdict,
                    "disagreement": found.disagreement,
                    "estimates": {one.estimator: one.model_dump() for one in found.of},
                }
                for found in self.of_policies
            },
        }


def load_estimates(folder: str | Path) -> tuple[PolicyEstimates, ...]:
    """All estimates that a folder holds, by policy; none where there is no such folder."""
    found: dict[str, list[Estimate]] = {}
    for path in sorted(Path(folder).glob("*.json")):
        one = Estimate.load(path)
        found.setdefault(one.policy, []).append(one)
    order = list(LABELS)
    sort = lambda some: tuple(sorted(some, key=lambda e: order.index(e.estimator)))  # noqa: E731
    return tuple(PolicyEstimates(name, sort(some)) for name, some in found.items())


def apart(first: Estimate, second: Estimate) -> bool:
    """Whether two intervals have nothing in common."""
    if first.interval is None or second.interval is None:
        return False
    return first.interval[0] > second.interval[1] or second.interval[0] > first.interval[1]


def interval_of(
    value: float, spread: float, freedom: int, known_error: float, unknown: float = 0.0
) -> list[float]:
    """The 90 % interval, of three parts that have nothing to do with each other.

    - `spread`: over replicas or members, with Student's t for their number.
    - `known_error`: what the estimator is wrong by where it can be checked.
    - `unknown`: the standard deviation of what cannot be checked, outside the trust region.
    """
    from scipy.stats import norm, t

    share = 0.5 + CONFIDENCE / 2
    wide = float(t.ppf(share, max(freedom, 1))) * spread
    half = math.hypot(wide, known_error, float(norm.ppf(share)) * unknown)
    return [value - half, value + half]


def _width(one: Estimate) -> float:
    return math.inf if one.interval is None else one.interval[1] - one.interval[0]


def _shown(one: Estimate) -> str:
    if one.value is None or one.interval is None:
        return "no answer"
    return f"{one.value:,.4g} [{one.interval[0]:,.4g}, {one.interval[1]:,.4g}]"

"""The first screen of a report: what a run's policies earn, where they can be trusted, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcetm.agents.inside import Inside
from mcetm.numbers import number, with_spread

_FEW = 0.9
"""Below this share of held-out states a policy leaves what the log knows too often to go unsaid."""


@dataclass(frozen=True)
class Verdict:
    """Sentences under three headings."""

    earns: tuple[str, ...]
    trusted: tuple[str, ...]
    next: tuple[str, ...]


def verdict_of(results: dict[str, Any], inside: Sequence[Inside], folder: str = "RUN") -> Verdict:
    """The verdict on a run's own algorithm; `inside` is about held-out episodes, one for each seed."""
    name = list(results["algorithms"])[-1]
    found = results["algorithms"][name]
    earns, worse = _earns(name, found, results)
    trusted, leaves = _trusted(inside)
    advice = []
    if found is None:
        advice.append(f"Ask what the log alone can say of the return: mcetm estimate {folder}")
    elif worse:
        advice.append("Do not use these policies: what the log was made with earns more.")
    elif len(found["returns"]) > 1:
        advice.append(f"Choose the seed to use, and plan its first real episodes: mcetm select {folder}")
    if leaves:
        advice.append(
            "The policy often does what the log has not seen. Raise its caution (penalty), or collect data "
            "there."
        )
    if inside:
        advice.append(
            "While it runs, ask policy.trust(obs), and give policy(obs, fallback=…) what should act outside."
        )
    return Verdict(tuple(earns), tuple(trusted), tuple(advice))


def _earns(name: str, found: dict[str, Any] | None, results: dict[str, Any]) -> tuple[list[str], bool]:
    data = number(results["data_return"])
    if found is None:
        return [
            f"Not measured: there was no environment to try {name} in. The log's own episodes earned {data}."
        ], False
    returns = np.array(found["returns"], float)
    above = int((returns > results["data_return"]).sum())
    seeds = "1 seed" if len(returns) == 1 else f"mean ± spread of {len(returns)} seeds"
    compared = {
        len(returns): "more than the log in every seed",
        0: "no more than the log in any seed",
    }.get(above, f"more than the log in {above} of {len(returns)} seeds")
    if len(returns) == 1:
        compared = "more than the log" if above else "no more than the log"
    return [
        f"{name} earns {with_spread(returns.tolist())} an episode ({seeds}), measured in its environment. "
        f"The log's own episodes earned {data}: {compared}."
    ], above < len(returns) / 2


def _trusted(inside: Sequence[Inside]) -> tuple[list[str], bool]:
    if not inside:
        return ["Nothing is known: this algorithm learned in no world, so it has no score of pairs."], False
    shares = [one.policy for one in inside]
    low, high = min(shares), max(shares)
    span = f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}"
    said = [
        f"In {span} of held-out states what the policy does is inside what the log knows; fresh rows of the "
        f"log itself would be in {inside[0].expected:.1%}."
    ]
    columns: dict[str, list[float]] = {}
    for one in inside:
        for column, share in one.columns:
            columns.setdefault(column, []).append(share)
    worst = sorted(columns, key=lambda column: -sum(columns[column]))[:3]
    said.append("Inside means that the log has such steps. It does not mean that the policy is good.")
    if worst and low < inside[0].expected:
        said.append(f"What is outside is so mostly by: {', '.join(worst)}.")
    return said, low < _FEW

"""The first screen of a report: what a run's policies earn, where they can be trusted, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcetm.agents.inside import Inside
from mcetm.estimates import PolicyEstimates
from mcetm.numbers import number, with_spread

_FEW = 0.9
"""Below this share of held-out states a policy leaves what the log knows too often to go unsaid."""
_MOST = 5
"""Policies that get a sentence of their own."""
_MATTERS = 0.1
"""A share of what a policy gained over the log; that another algorithm earned less more goes unsaid."""
_FEW_EPISODES = 5
"""Shares of fewer held-out episodes are those of chance."""


@dataclass(frozen=True)
class Verdict:
    """Sentences under three headings."""

    earns: tuple[str, ...]
    trusted: tuple[str, ...]
    next: tuple[str, ...]
    good: bool | None = None
    """Whether the policies earn more than the log: measured, or by an estimate that is believed. None where
    that is not known."""


def verdict_of(
    results: dict[str, Any],
    inside: Sequence[Inside],
    folder: str = "RUN",
    estimates: Sequence[PolicyEstimates] = (),
    own_inside: float | None = None,
) -> Verdict:
    """The verdict on a run's own algorithm.

    **Arguments:**

    - `results`: the run's table.
    - `inside`: about held-out episodes, one for each seed.
    - `folder`: of the run, for commands that are advised.
    - `estimates`: of its policies, where there are some.
    - `own_inside`: of the steps of episodes that the policies ran, the share inside.
    """
    name = list(results["algorithms"])[-1]
    found = results["algorithms"][name]
    if found is None and estimates:
        earns, good = _estimated(name, estimates)
        advice = _after_estimates(estimates, good, folder)
    else:
        earns, good = _earns(name, found, results)
        advice = []
        if found is None:
            advice.append(f"Ask what the log alone can say of the return: mcetm estimate {folder}")
        elif not good:
            advice.append("Do not use these policies: what the log was made with earns more.")
        elif len(found["returns"]) > 1:
            advice.append(f"Choose the seed to use, and plan its first real episodes: mcetm select {folder}")
    better = _better(name, results)
    if better is not None:
        advice.append(better)
    trusted, leaves = _trusted(inside, own_inside)
    if leaves:
        advice.append(
            "The policy often does what the log has not seen. Raise its caution (penalty), or collect data "
            "there."
        )
    if inside:
        advice.append(
            "While it runs, ask policy.trust(obs), and give policy(obs, fallback=…) what should act outside."
        )
    return Verdict(tuple(earns), tuple(trusted), tuple(advice), good)


def _earns(name: str, found: dict[str, Any] | None, results: dict[str, Any]) -> tuple[list[str], bool | None]:
    data = number(results["data_return"])
    if found is None:
        return [
            f"Not measured: there was no environment to try {name} in. The log's own episodes earned {data}."
        ], None
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
    ], above >= len(returns) / 2


def _estimated(name: str, estimates: Sequence[PolicyEstimates]) -> tuple[list[str], bool | None]:
    """What the policies would earn by the estimates to go by, and whether that is more than the log's own."""
    said, above, below = [], 0, 0
    data = estimates[0].of[0].log_return  # in the quantity of the estimates
    for each in estimates[:_MOST]:
        one, policy = each.chosen, each.policy.rpartition(" ")[2]
        if one is None or one.value is None or one.interval is None:
            said.append(f"{policy}: no estimator had an answer.")
            continue
        low, high = one.interval
        ends = f"90 % interval {number(low)} to {number(high)}"
        believed = "believed" if each.believed else "not to be believed"
        said.append(f"{policy} would earn {number(one.value)} ({ends}; {one.label}): {believed}.")
        above += each.believed and low > data
        below += each.believed and high < data
    if len(estimates) > _MOST:
        said.append(f"{len(estimates) - _MOST} more policies are in the table of estimates.")
    count = min(len(estimates), _MOST)
    words = "what is believed does not say whether the policies earn more"
    if above or below:
        parts = [f"{above} of {count} more" if above else "", f"{below} of {count} less" if below else ""]
        words = f"{' and '.join(filter(None, parts))}, by estimates that are believed"
    head = f"{name} was not measured: there was no environment. These are estimates from the log alone."
    return [head, *said, f"The log's own episodes earned {number(data)}: {words}."], (
        True if above else False if below else None
    )


def _after_estimates(estimates: Sequence[PolicyEstimates], good: bool | None, folder: str) -> list[str]:
    if good:
        return [f"Choose the policy to use, and plan its first real episodes: mcetm select {folder}"]
    if good is False:
        return ["Do not use these policies: what the log was made with is believed to earn more."]
    if any(each.believed for each in estimates):
        return [f"Only real episodes tell more. Plan which to run: mcetm select {folder} --budget 10"]
    return [
        "Do not rely on these numbers; the table of estimates says why. Collect episodes of the policy under "
        "supervision, or train a more cautious one."
    ]


def _better(name: str, results: dict[str, Any]) -> str | None:
    """Which other algorithm of the table earned more, by so much and in so many seeds that it matters."""
    measured = {
        other: found["returns"] for other, found in results["algorithms"].items() if found is not None
    }
    if name not in measured:
        return None
    best = max(measured, key=lambda other: float(np.mean(measured[other])))
    gained = float(np.mean(measured[name])) - results["data_return"]
    more = float(np.mean(measured[best])) - float(np.mean(measured[name]))
    if best == name or min(measured[best]) <= max(measured[name]) or more <= _MATTERS * abs(gained):
        return None
    return f"{best} earned more on the same log: {with_spread(measured[best])}. Consider a run of it."


def _trusted(inside: Sequence[Inside], own_inside: float | None) -> tuple[list[str], bool]:
    if not inside:
        return ["Nothing is known: this algorithm learned in no world, so it has no score of pairs."], False
    shares = [one.policy for one in inside]
    low, high = min(shares), max(shares)
    span = f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}"
    said = [
        f"In {span} of held-out states what the policy does is inside what the log knows; fresh rows of the "
        f"log itself would be in {inside[0].expected:.1%}."
    ]
    if own_inside is not None:
        said.append(f"In its own episodes {own_inside:.1%} of its steps are inside.")
    held_out = len(inside[0].episodes)
    if held_out < _FEW_EPISODES:
        words = "1 episode was" if held_out == 1 else f"{held_out} episodes were"
        said.append(f"Only {words} held out, so the share of held-out states says little.")
    columns: dict[str, list[float]] = {}
    for one in inside:
        for column, share in one.columns:
            columns.setdefault(column, []).append(share)
    worst = sorted(columns, key=lambda column: -sum(columns[column]))[:3]
    said.append("Inside means that the log has such steps. It does not mean that the policy is good.")
    if worst and low < inside[0].expected:
        said.append(f"What is outside is so mostly by: {', '.join(worst)}.")
    return said, min(low, 1.0 if own_inside is None else own_inside) < _FEW

"""What a log leaves unsaid: where episodes end, what follows each row, and what is known to be unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mcetm.data.faults import DataError, Fault
from mcetm.data.transitions import FIELDS, Metadata, Transitions

_ROUNDING = 1e-5
"""Relative difference that still counts as the same number."""


def complete(
    arrays: dict[str, np.ndarray],
    metadata: Metadata,
    infos: Mapping[str, np.ndarray],
    time_limit: int | None,
    *,
    ends_are_marked: bool = False,
) -> Transitions:
    """Transitions from checked arrays: fill in what can be inferred, drop what nothing can be learned from.

    That is a row at which the log was cut and whose next observation is unknown. Where the task ended there,
    nothing follows that a value could depend on: the row stays, with not-a-number as its next observation.
    """
    rows = len(arrays["obs"])
    notes = list(metadata.notes)
    absent = set(metadata.absent)
    if "action" not in arrays:
        arrays["action"] = np.zeros((rows, 0), np.float32)
        absent.add("action")
    if "reward" not in arrays:
        arrays["reward"] = np.zeros(rows, np.float32)
        absent.add("reward")
    terminated = arrays.get("terminated")
    if terminated is None:
        terminated = np.zeros(rows, bool)
        notes.append("the log has no 'terminated' field: no row counts as a termination")

    if ends_are_marked and "truncated" in arrays:
        truncated = arrays["truncated"].copy()
    else:
        truncated = _episode_cuts(arrays, terminated, time_limit, notes)
    ends = terminated | truncated
    if not ends[-1]:
        truncated[-1] = ends[-1] = True

    if "next_obs" in arrays:
        unknown = np.asarray(np.isnan(arrays["next_obs"]).all(axis=1))
        if (inside := np.flatnonzero(unknown & ~ends)).size:
            message = "component 0 is NaN, and the row ends no episode"
            raise DataError(metadata.source, [Fault("next_obs", message, int(inside[0]))])
    else:
        # Row t's successor is row t + 1, unless t ends an episode: what lies there is a reset.
        arrays["next_obs"] = np.concatenate([arrays["obs"][1:], arrays["obs"][-1:]])
        unknown = ends
        notes.append("the log has no next observations: they are the following row's, inside an episode")
    lost = np.asarray(unknown & ~terminated)
    if unknown.any():
        arrays["next_obs"] = np.where(unknown[:, None], np.float32(np.nan), arrays["next_obs"])
        # The row before a dropped one is where the known part of its episode stops.
        truncated |= np.concatenate([lost[1:], [False]]) & ~ends

    fields = {**arrays, "terminated": terminated, "truncated": truncated}
    fields = {name: fields[name] for name in FIELDS}
    dropped = metadata.dropped
    if lost.any():
        fields = {name: array[~lost] for name, array in fields.items()}
        infos = {name: array[~lost] for name, array in infos.items()}
        dropped += int(np.count_nonzero(lost))
    for array in fields.values():
        array.flags.writeable = False  # checked once; a later change would make the checksum a lie
    return Transitions(
        **fields,
        infos=infos,
        metadata=replace(metadata, absent=frozenset(absent), dropped=dropped, notes=tuple(notes)),
    )


def _episode_cuts(
    arrays: dict[str, np.ndarray],
    terminated: np.ndarray,
    time_limit: int | None,
    notes: list[str],
) -> np.ndarray:
    """Rows where an episode is cut without being terminated, from what the log offers.

    A field that marks nothing says nothing: files whose time-outs are all false are in circulation.
    """
    rows = len(terminated)
    given = arrays.get("truncated")
    truncated = np.zeros(rows, bool) if given is None else given.copy()
    if "episode" in arrays:
        labels = arrays["episode"]
        truncated[:-1] |= (labels[1:] != labels[:-1]) & ~terminated[:-1]
    elif truncated.any():
        pass
    elif "next_obs" in arrays:
        truncated[:-1] |= ~continues(arrays["obs"], arrays["next_obs"]) & ~terminated[:-1]
        if truncated.any():
            notes.append(
                "no time-outs are marked: episodes are cut where next_obs does not continue in the next row"
            )
    elif time_limit is not None:
        time_limit = min(time_limit, rows + 1)  # beyond that no limit cuts anything
        # Count rows since the last termination; every `time_limit`-th is a time-out.
        last_end = np.maximum.accumulate(np.where(terminated, np.arange(rows), -1))
        since = np.arange(rows) - np.concatenate([[-1], last_end[:-1]]) - 1
        truncated = (since % time_limit == time_limit - 1) & ~terminated
        if truncated.any():
            notes.append(f"no time-outs are marked: episodes are cut at the limit of {time_limit} steps")
    elif not terminated.any():
        notes.append("nothing marks where episodes end: the whole log is taken as ONE episode")
    else:
        notes.append("no time-outs and no episode labels: only terminations end an episode")
    return truncated


def continues(obs: np.ndarray, next_obs: np.ndarray) -> np.ndarray:
    """Whether next_obs of each row is obs of the following one, up to rounding in single precision."""
    following = obs[1:]
    # The typical size of a column forgives rounding near zero; a median, so that no outlier widens it.
    typical = np.median(np.abs(obs[:: max(1, len(obs) // 1000)]), axis=0)
    tolerance = _ROUNDING * np.maximum(np.abs(next_obs[:-1]), np.abs(following)) + _ROUNDING * typical
    with np.errstate(over="ignore"):  # numbers so far apart that their difference is infinite
        return np.all(np.abs(next_obs[:-1] - following) <= tolerance, axis=1)

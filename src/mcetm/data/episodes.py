"""Whole episodes as data: one mapping per episode, as a logger or an environment loop yields them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np

from mcetm.arguments import require
from mcetm.data.transitions import Metadata, Transitions
from mcetm.data.validate import DataError, Fault, ReadOptions, build

_KNOWN = ("obs", "action", "reward", "next_obs", "terminated", "truncated", "infos")


def from_episodes(
    episodes: Iterable[Mapping[str, Any]],
    *,
    metadata: Metadata | None = None,
    **options: Unpack[ReadOptions],
) -> Transitions:
    """Transitions from episodes of T steps.

    Each has `obs` of T + 1 rows (the last one is where the episode arrived), or of T rows, alone
    or together with `next_obs`; `action` and `reward` of T rows where there are any; and
    `terminated` as one truth value or T of them. An episode that does not terminate was
    truncated, whether it says so or not.
    """
    require("episodes", episodes, "a list of episodes, each a dictionary", Iterable)
    metadata = metadata or Metadata(source="the episodes")
    gathered: dict[str, list[np.ndarray]] = {}
    faults: list[Fault] = []
    episodes = list(episodes)
    for number, episode in enumerate(episodes):
        try:
            steps = _steps_of(episode)
        except ValueError as error:
            faults.append(Fault(f"episode {number}", str(error)))
            continue
        for name, array in steps.items():
            gathered.setdefault(name, []).append(array)
    for name, arrays in gathered.items():
        if len(arrays) < len(episodes) and not faults:
            faults.append(Fault(name, f"is in {len(arrays)} of {len(episodes)} episodes only"))
        if len({a.shape[1:] for a in arrays}) > 1:
            faults.append(
                Fault(name, f"differs in width between episodes, {sorted({a.shape[1:] for a in arrays})}")
            )
    if not episodes:
        faults.append(Fault("episodes", "there are none"))
    if faults:
        raise DataError(metadata.source, faults)
    return build({k: np.concatenate(v) for k, v in gathered.items()}, metadata, **options)


def _steps_of(episode: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """One episode's fields with T rows each."""
    if not isinstance(episode, Mapping):
        raise ValueError(f"is a {type(episode).__name__}, not a dictionary with 'obs' and so on")
    if "obs" not in episode:
        raise ValueError("has no 'obs'")
    for name in set(map(str, episode)) - {*_KNOWN}:
        if near := difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0.8):
            raise ValueError(f"has {name!r:.60}, and no such field is known; did you mean '{near[0]}'?")
    obs = np.asarray(episode["obs"])
    if obs.ndim == 0:
        raise ValueError("'obs' is a single number")
    # As many observations as actions: nobody noted where the last of them led.
    cut = "next_obs" not in episode and "action" in episode and np.shape(episode["action"])[:1] == (len(obs),)
    length = len(obs) if cut or "next_obs" in episode else len(obs) - 1
    if length < 1:
        raise ValueError("has no complete step")
    following = np.asarray(episode.get("next_obs", obs[1:]))
    if cut and obs.dtype.kind in "biuf":
        following = np.concatenate([following, np.full_like(obs[:1], np.nan, np.float64)])
    fields = {"obs": obs[:length], "next_obs": following}
    fields |= {name: np.asarray(episode[name]) for name in ("action", "reward") if name in episode}
    for name, array in fields.items():
        if array.ndim == 0:
            raise ValueError(f"'{name}' is a single number, but the episode has {length} steps")
        if len(array) != length:
            raise ValueError(f"'{name}' has {len(array)} rows, but the episode has {length} steps")
    terminated = np.zeros(length, bool)
    ended = np.asarray(episode.get("terminated", False))
    if ended.ndim == 0:
        if ended not in (0, 1):
            raise ValueError(f"'terminated' must be 0 or 1, but is {str(ended)[:40]!r}")
        terminated[-1] = bool(ended)
    elif len(ended) == length:
        terminated = ended.reshape(length)
    else:
        raise ValueError(f"'terminated' has {len(ended)} rows, but the episode has {length} steps")
    truncated = np.zeros(length, bool)
    truncated[-1] = terminated[-1] == 0
    return {**fields, "terminated": terminated, "truncated": truncated}

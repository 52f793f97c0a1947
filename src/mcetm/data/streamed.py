"""A log that is too large to be held whole: its rows stay where they are, read when asked for.

It is a view: which rows, as stretches of them, one for each episode. So a hold-out copies nothing. What
learns from it gets windows of rows (`training/windows.py`); statistics and sums are taken block by block.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from mcetm.data.transitions import FIELDS, Metadata, Transitions
from mcetm.errors import UserError
from mcetm.memory import free_memory

WINDOW = 1_000_000
"""Rows on the device at a time, if nobody says otherwise."""
_BLOCK = 500_000
"""Rows that are looked at together where all of them are."""
_EXCERPT = 200_000
"""Rows of an excerpt, at most."""
_PIECE = 1024
"""Consecutive rows that are read together: a system reads far more than a single row at a time."""
_FLAGS = ("terminated", "truncated")


class StreamedTransitions(Transitions):
    """Rows like any other `Transitions`, of which only a part is in memory at any time.

    `obs`, `action` and the other fields can still be asked for: each is then read whole, if memory allows.
    """

    window: int
    """Rows that are on the device at a time."""
    _columns: Mapping[str, Any]
    _starts: Int[np.ndarray, " episodes"]
    _stops: Int[np.ndarray, " episodes"]
    _release: Callable[[], None]

    def __init__(
        self,
        columns: Mapping[str, Any],
        starts: Int[np.ndarray, " episodes"],
        stops: Int[np.ndarray, " episodes"],
        metadata: Metadata,
        *,
        window: int = WINDOW,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        """A view of some rows.

        **Arguments:**

        - `columns`: all rows of each field, as arrays in memory or mapped from a file.
        - `starts`, `stops`: the first row of each episode of this view, and one past its last.
        - `metadata`: what is known of the log besides.
        - `window`: rows that are on the device at a time.
        - `release`: gives memory back that mapped rows took when they were read.
        """
        vars(self).update(infos={}, metadata=metadata, window=window)
        vars(self).update(_columns=columns, _starts=starts, _stops=stops, _release=release)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in FIELDS:
            raise AttributeError(name)
        width = int(np.prod(vars(self)["_columns"][name].shape[1:]))
        taken, free = len(self) * width * (1 if name in _FLAGS else 4), free_memory()
        if free is not None and taken > free:
            raise UserError(
                f"All '{name}' of {self.metadata.source} at once would take {taken / 1e9:,.1f} GB, and "
                f"{free / 1e9:,.1f} GB are free; take a part of the log, such as excerpt() of it."
            )
        return np.concatenate([part[name] for part in self._parts((name, *_FLAGS))])

    def __len__(self) -> int:
        return int(self.episode_ends[-1]) if len(self._starts) else 0

    @property
    def obs_dim(self) -> int:
        """Width of an observation."""
        return self._columns["obs"].shape[1]

    @property
    def action_dim(self) -> int:
        """Width of an action."""
        return self._columns["action"].shape[1]

    @functools.cached_property
    def episode_ends(self) -> Int[np.ndarray, " episodes"]:
        """One past the last row of each episode."""
        return np.cumsum(self._stops - self._starts)

    @property
    def episode_returns(self) -> np.ndarray:
        """Undiscounted sum of rewards of each episode."""
        found = np.zeros(self.num_episodes)
        for first, part in zip(self._bounds[:-1], self.blocks(), strict=True):
            place = np.searchsorted(self.episode_ends, first, side="right")
            found[place : place + part.num_episodes] += part.episode_returns
        return found

    @functools.cached_property
    def _last_unknown(self) -> Bool[np.ndarray, " episodes"]:
        """Which episodes end with a row whose next observation is unknown; no other row's may be."""
        last = np.take(self._columns["next_obs"], self._stops - 1, axis=0)
        return np.asarray(~np.isfinite(last).all(axis=1))

    @functools.cached_property
    def next_known(self) -> Bool[np.ndarray, " rows"]:
        """Rows whose next observation is known."""
        known = np.ones(len(self), bool)
        known[self.episode_ends[self._last_unknown] - 1] = False
        return known

    @functools.cached_property
    def with_next(self) -> Transitions:
        """The rows whose next observation is known."""
        if not self._last_unknown.any():
            return self
        stops = self._stops - self._last_unknown
        left = stops > self._starts
        if not left.any():
            raise UserError(f"{self.metadata.source} has no row whose next observation is known.")
        return self._view(self._starts[left], stops[left])

    @functools.cached_property
    def checksum(self) -> str:
        """That of the same rows in memory."""
        digest = hashlib.sha256()
        for name in FIELDS:
            shape = (len(self), *self._columns[name].shape[1:])
            digest.update(f"{name}{'|b1' if name in _FLAGS else '<f4'}{shape}".encode())
            for part in self._parts((name, *_FLAGS)):
                digest.update(np.ascontiguousarray(part[name]).data)
        digest.update(json.dumps(sorted(self.metadata.absent)).encode())
        return digest.hexdigest()

    @property
    def rows_at_once(self) -> int:
        """Rows that are on the device at a time."""
        return len(self) if self.window >= len(self) else min(len(self), -(-self.window // _PIECE) * _PIECE)

    def blocks(self) -> Iterator[Transitions]:
        """All rows in order, some at a time; an episode that is longer than a block is cut."""
        for first, stop in zip(self._bounds[:-1], self._bounds[1:], strict=True):
            yield self._take(np.arange(first, stop))

    def excerpt(self) -> Transitions:
        """Some whole episodes in memory, always the same ones, where there are more than fit one."""
        most = min(_EXCERPT, self.window)
        if len(self) <= most:
            return self._take(np.arange(len(self)))
        order = np.random.default_rng(0).permutation(self.num_episodes)
        fits = np.cumsum(self.episode_lengths[order]) <= most
        if not fits[0]:  # one that is longer than all of the excerpt: its beginning
            return self.select_episodes(order[:1]).head(most)._take(np.arange(most))
        found = self.select_episodes(np.sort(order[: np.argmin(fits)]))
        return found._take(np.arange(len(found)))

    def select_episodes(self, episodes: Sequence[int] | np.ndarray) -> Transitions:
        """The given episodes, in the given order; no row is read."""
        episodes = np.asarray(episodes, np.intp)
        return self._view(self._starts[episodes], self._stops[episodes])

    def join(self, other: Transitions) -> Transitions:
        """Logs of this size are not joined."""
        raise UserError(f"{self.metadata.source} is streamed, and such logs cannot be joined; join excerpts.")

    def with_metadata(self, **changes: Any) -> StreamedTransitions:
        """The same rows with some metadata replaced."""
        changed = self._view(self._starts, self._stops, replace(self.metadata, **changes))
        if "checksum" in vars(self) and changed.metadata.absent == self.metadata.absent:
            vars(changed)["checksum"] = self.checksum
        return changed

    def streamed(self, window: int = WINDOW) -> StreamedTransitions:
        """The same with another window."""
        return self._view(self._starts, self._stops, window=window)

    def draw_window(self, number: int) -> dict[str, np.ndarray]:
        """The rows of a window by their fields.

        The log is cut into pieces of neighbouring rows, and each pass deals all of them out in an order of
        its own. So every row is in one window of each pass; only a few at the log's end are in two.
        """
        rows = self.rows_at_once
        if rows == len(self):
            return self._read(np.arange(rows), FIELDS)
        each, pieces = rows // _PIECE, -(-len(self) // _PIECE)
        places = np.arange(number * each, (number + 1) * each)
        turns = {
            turn: np.random.default_rng((turn, pieces)).permutation(pieces)
            for turn in set((places // pieces).tolist())
        }
        chosen = np.array([turns[place // pieces][place % pieces] for place in places.tolist()])
        firsts = np.minimum(np.sort(chosen) * _PIECE, len(self) - _PIECE)
        return self._read((firsts[:, None] + np.arange(_PIECE)).ravel(), FIELDS)

    @functools.cached_property
    def _bounds(self) -> list[int]:
        """Where blocks begin and the last one ends: between episodes, where these are short enough."""
        bounds, ends = [0], self.episode_ends
        while bounds[-1] < len(self):
            whole = int(ends[max(0, np.searchsorted(ends, bounds[-1] + _BLOCK, side="right") - 1)])
            bounds.append(whole if whole > bounds[-1] else min(len(self), bounds[-1] + _BLOCK))
        return bounds

    def _parts(self, fields: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
        for first, stop in zip(self._bounds[:-1], self._bounds[1:], strict=True):
            yield self._read(np.arange(first, stop), fields)

    def _read(self, rows: Int[np.ndarray, " rows"], fields: Sequence[str]) -> dict[str, np.ndarray]:
        """Some fields at these rows of the view; the last row of an episode that did not terminate is cut."""
        ends = self.episode_ends
        episode = np.searchsorted(ends, rows, side="right")
        places = self._stops[episode] - (ends[episode] - rows)
        found: dict[str, np.ndarray] = {}
        for name in fields:
            kind = bool if name in _FLAGS else np.float32
            found[name] = np.take(self._columns[name], places, axis=0).astype(kind, copy=False)
            self._release()
        if "truncated" in found:
            found["truncated"] |= (rows == ends[episode] - 1) & ~found["terminated"]
        return found

    def _take(self, rows: slice | np.ndarray) -> Transitions:
        """A slice as a view; single rows in memory."""
        if isinstance(rows, slice):
            first, stop, _ = rows.indices(len(self))
            ends = self.episode_ends
            starts = np.maximum(self._starts, self._stops - (ends - first))
            stops = np.minimum(self._stops, self._stops - (ends - stop))
            left = stops > starts
            return self._view(starts[left], stops[left])
        arrays = self._read(rows, FIELDS)
        if len(rows) and not arrays["terminated"][-1]:
            arrays["truncated"][-1] = True
        return Transitions(**arrays, infos={}, metadata=self.metadata)

    def _view(
        self,
        starts: np.ndarray,
        stops: np.ndarray,
        metadata: Metadata | None = None,
        window: int | None = None,
    ) -> StreamedTransitions:
        return StreamedTransitions(
            self._columns,
            starts,
            stops,
            metadata or self.metadata,
            window=window or self.window,
            release=self._release,
        )

"""`Transitions`: a fixed log of experience, the one type every reader returns and every model takes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from jaxtyping import Bool, Float32, Int

from mcetm.arguments import path_of, require, whole
from mcetm.errors import UserError

if TYPE_CHECKING:
    from mcetm.data.streamed import StreamedTransitions
    from mcetm.data.validate import ReadOptions

FIELDS = ("obs", "action", "reward", "next_obs", "terminated", "truncated")


@dataclass(frozen=True)
class Metadata:
    """What is known about a log besides its arrays."""

    source: str = "arrays"
    """Where it was read from, for messages."""
    task: str | None = None
    """Name of a registered task, when the environment is known."""
    action_low: tuple[float, ...] | None = None
    action_high: tuple[float, ...] | None = None
    """Bounds of the action space; None when only the data's own range is known."""
    obs_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    """What the log's maker calls each number of an observation and of an action; None where nobody said."""
    reward_name: str | None = None
    """What the log's maker calls the reward."""
    absent: frozenset[str] = frozenset()
    """Fields the log does not have ('reward', 'action'); their arrays are zeros or of no width."""
    dropped: int = 0
    """Rows left out because the log was cut there and their next observation is unknown."""
    notes: tuple[str, ...] = ()
    """What a reader had to assume or infer, one sentence each."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """How the data came about (task, policy checksums, seed, versions), when it is recorded."""

    def name_of(self, field: str, column: int) -> str | None:
        """What one number of `obs`, `next_obs` or `action` is called, where that is known."""
        names = self.action_names if field == "action" else self.obs_names
        return None if names is None or column >= len(names) else names[column]

    @property
    def known_names(self) -> dict[str, Any]:
        """The names that are known, as JSON holds them: what a policy learned from this log keeps of it."""
        found = {"obs_names": self.obs_names, "action_names": self.action_names}
        return {field: list(names) for field, names in found.items() if names is not None}


@dataclass(frozen=True, eq=False)
class Transitions:
    """Rows (obs, action, reward, next_obs, terminated, truncated), with episodes one after the other.

    `terminated` means that the task ended (nothing follows, the value is zero); `truncated` that
    the log was cut while the task went on (a time limit, the end of the file). The last row of
    every episode has one of the two, so episode boundaries need no further field. Use
    `from_arrays` or a reader to build one from outside: they validate.
    """

    obs: Float32[np.ndarray, "rows obs"]
    action: Float32[np.ndarray, "rows action"]
    reward: Float32[np.ndarray, " rows"]
    next_obs: Float32[np.ndarray, "rows obs"]
    """Not-a-number where it is unknown, which only a terminated row's may be: see `next_known`."""
    terminated: Bool[np.ndarray, " rows"]
    truncated: Bool[np.ndarray, " rows"]
    infos: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Further arrays with one row per transition, such as the simulator's `qpos` and `qvel`."""
    metadata: Metadata = field(default_factory=Metadata)

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in FIELDS} | {
            k: len(v) for k, v in self.infos.items()
        }
        if len(set(lengths.values())) > 1:
            raise ValueError(f"fields differ in length: {lengths}")
        if len(self) and not (self.terminated[-1] or self.truncated[-1]):
            raise ValueError("the last row ends no episode; mark it truncated")

    @classmethod
    def from_arrays(
        cls,
        obs: Any,
        action: Any = None,
        reward: Any = None,
        next_obs: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        *,
        episode: Any = None,
        infos: Mapping[str, Any] | None = None,
        metadata: Metadata | None = None,
        **options: Unpack[ReadOptions],
    ) -> Transitions:
        """Validate arrays and build transitions from them; one row is one step.

        Only `obs` is required. What was inferred for the others is in the card.

        **Arguments:**

        - `obs`: what was observed, rows by columns.
        - `action`: what was done; none without it.
        - `reward`: what the step earned; zeros without it.
        - `next_obs`: what was observed after it. Without it the following row's `obs`, inside an episode.
        - `terminated`: whether the task ended with the step.
        - `truncated`: whether the episode was cut after it. Without it episodes end where `episode`
          changes, where `next_obs` does not continue, or every `time_limit` rows.
        - `episode`: any labels, equal within an episode.
        - `infos`: more columns to keep, by name.
        - `metadata`: where the log comes from, its task, its action bounds and names.
        - `options`: `task`, `time_limit`, `min_transitions` and `columns`, as `load_dataset` takes them.

        **Returns:** the log; a fault is named in one sentence, with its row.
        """
        from mcetm.data.validate import build

        given = (obs, action, reward, next_obs, terminated, truncated, episode)
        # Copies: what the caller does with their arrays afterwards must not reach into the log.
        fields = {
            name: value.copy() if isinstance(value, np.ndarray) else value
            for name, value in zip((*FIELDS, "episode"), given, strict=True)
        }
        require("metadata", metadata, "Metadata", Metadata, NoneType)
        return build(fields, metadata or Metadata(), infos=infos, **options)

    @classmethod
    def from_episodes(
        cls, episodes: Iterable[Mapping[str, Any]], **options: Unpack[ReadOptions]
    ) -> Transitions:
        """Build from whole episodes; see `mcetm.data.episodes.from_episodes`."""
        from mcetm.data.episodes import from_episodes

        return from_episodes(episodes, **options)

    @classmethod
    def from_dataframe(cls, frame: Any, **options: Unpack[ReadOptions]) -> Transitions:
        """Build from a pandas or Polars data frame; see `mcetm.data.tables` for its columns."""
        from mcetm.data.tables import from_dataframe

        return from_dataframe(frame, **options)

    def __len__(self) -> int:
        return len(self.obs)

    def __repr__(self) -> str:
        return (
            f"Transitions({len(self):,} rows, obs {self.obs_dim}, action {self.action_dim}, "
            f"{self.num_episodes:,} episodes, from {self.metadata.source})"
        )

    @property
    def obs_dim(self) -> int:
        """Width of an observation."""
        return self.obs.shape[1]

    @property
    def action_dim(self) -> int:
        """Width of an action; 0 for a log without actions."""
        return self.action.shape[1]

    @functools.cached_property
    def episode_ends(self) -> Int[np.ndarray, " episodes"]:
        """One past the last row of each episode."""
        return np.flatnonzero(self.terminated | self.truncated) + 1

    @functools.cached_property
    def episode_starts(self) -> Int[np.ndarray, " episodes"]:
        """First row of each episode."""
        return np.concatenate([np.zeros(min(1, len(self)), np.intp), self.episode_ends[:-1]])

    @property
    def num_episodes(self) -> int:
        """Number of episodes, cut ones included."""
        return len(self.episode_ends)

    @property
    def episode_lengths(self) -> Int[np.ndarray, " episodes"]:
        """Rows in each episode."""
        return self.episode_ends - self.episode_starts

    @property
    def episode_returns(self) -> np.ndarray:
        """Undiscounted sum of rewards of each episode."""
        if not len(self):
            return np.zeros(0)
        return np.add.reduceat(self.reward.astype(np.float64), self.episode_starts)

    @functools.cached_property
    def next_known(self) -> Bool[np.ndarray, " rows"]:
        """Rows whose next observation is known; a log may leave it out where the task ended."""
        return np.asarray(np.isfinite(self.next_obs).all(axis=1))

    @property
    def next_or_same(self) -> Float32[np.ndarray, "rows obs"]:
        """The next observation, or the one before where it is unknown: for uses that an end makes idle."""
        return np.where(self.next_known[:, None], self.next_obs, self.obs)

    @functools.cached_property
    def with_next(self) -> Transitions:
        """The rows whose next observation is known: what next states are learned from and measured on.

        The row before one that is left out ends what is known of its episode. Rewards, ends and pairs of the
        others are of use all the same; those who need no next state take the log as it is.
        """
        known = self.next_known
        if known.all():
            return self
        if not known.any():
            raise UserError(f"{self.metadata.source} has no row whose next observation is known.")
        ends = self.terminated | self.truncated
        stops = np.concatenate([~known[1:], [False]]) & ~ends
        return replace(self, truncated=self.truncated | stops)._take(np.flatnonzero(known))

    @functools.cached_property
    def checksum(self) -> str:
        """SHA-256 over the fields' contents: the same data give the same sum in whatever file they lie."""
        digest = hashlib.sha256()
        for name in FIELDS:
            array = getattr(self, name)
            little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            digest.update(f"{name}{little_endian.dtype.str}{array.shape}".encode())
            digest.update(little_endian.data)
        digest.update(json.dumps(sorted(self.metadata.absent)).encode())
        return digest.hexdigest()

    @property
    def rows_at_once(self) -> int:
        """Rows that are on the device at a time: all of them, but of a log that is streamed."""
        return len(self)

    def blocks(self) -> Iterator[Transitions]:
        """All rows in order: in one part, or some at a time where the log is streamed."""
        yield self

    def excerpt(self) -> Transitions:
        """The log itself; of one that is streamed, as much as is worth holding in memory."""
        return self

    def streamed(self, window: int = 1_000_000) -> StreamedTransitions:
        """The same rows for a device that cannot hold them: so many are on it at a time, the others here.

        `window` is a number of rows. A log that memory cannot hold either is read with
        `load_dataset(source, in_memory=False)`.
        """
        from mcetm.data.streamed import StreamedTransitions

        whole("window", window, least=1)
        columns = {name: getattr(self, name) for name in FIELDS}
        starts, ends = self.episode_starts, self.episode_ends
        return StreamedTransitions(columns, starts, ends, self.metadata, window=window)

    def require(self, *fields: str) -> None:
        """Refuse to go on where a needed field is absent from the log."""
        for name in fields:
            if name not in FIELDS:
                raise UserError(f"A log has no field '{name}'; it has: {', '.join(FIELDS)}.")
            if name in self.metadata.absent:
                raise UserError(f"{self.metadata.source} has no {name}s, and this job needs them.")

    def select_episodes(self, episodes: Sequence[int] | np.ndarray) -> Transitions:
        """The given episodes, in the given order."""
        episodes = np.array([self._episode(number) for number in episodes], np.intp)
        starts, lengths = self.episode_starts[episodes], self.episode_lengths[episodes]
        offsets = np.cumsum(lengths) - lengths
        rows = np.arange(lengths.sum()) + np.repeat(starts - offsets, lengths)
        return self._take(rows)

    def join(self, other: Transitions) -> Transitions:
        """These episodes and then those of another log of the same kind, without infos."""
        names = {
            field: _same(field, getattr(self.metadata, field), getattr(other.metadata, field))
            for field in ("obs_names", "action_names")
        }
        arrays = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in FIELDS}
        return replace(self, infos={}, metadata=replace(self.metadata, **names), **arrays)

    def head(self, rows: int) -> Transitions:
        """The first rows; where that cuts an episode, its last row becomes truncated."""
        return self._take(slice(0, whole("rows", rows, least=1)))

    def _episode(self, number: Any) -> int:
        return whole("episodes", number, most=self.num_episodes - 1)

    def _take(self, rows: slice | np.ndarray) -> Transitions:
        arrays = {name: getattr(self, name)[rows] for name in FIELDS}
        if len(arrays["obs"]) and not (arrays["terminated"][-1] or arrays["truncated"][-1]):
            arrays["truncated"] = arrays["truncated"].copy()
            arrays["truncated"][-1] = True
        return Transitions(
            **arrays,
            infos={k: v[rows] for k, v in self.infos.items()},
            metadata=self.metadata,
        )

    def split(self, holdout: float = 0.1, *, seed: int = 0) -> tuple[Transitions, Transitions]:
        """Train and hold-out parts of about the wished sizes, divided between episodes.

        Rows of one episode resemble each other, so a split between rows would flatter every
        model. A log that is one long episode is divided in time: its end is held out.
        """
        require("holdout", holdout, "a share between 0 and 1", float, int, np.floating)
        if not 0.0 < holdout < 1.0:
            raise UserError(f"The hold-out share must lie between 0 and 1, not {holdout}.")
        whole("seed", seed)
        if len(self) < 2:
            raise UserError(f"{self.metadata.source} has too few rows to hold some out.")
        if self.num_episodes == 1:
            cut = min(max(1, round(len(self) * (1.0 - holdout))), len(self) - 1)
            return self.head(cut), self._take(slice(cut, None))
        # In random order, every episode that brings the hold-out nearer to its size; at least one, never all.
        lengths, missing = self.episode_lengths, holdout * len(self)
        held = np.zeros(self.num_episodes, bool)
        for episode in np.random.default_rng(seed).permutation(self.num_episodes):
            if abs(missing - lengths[episode]) < abs(missing):
                held[episode] = True
                missing -= lengths[episode]
        if not held.any():
            held[np.argmin(lengths)] = True
        if held.all():
            held[np.argmin(lengths)] = False
        return self.select_episodes(np.flatnonzero(~held)), self.select_episodes(np.flatnonzero(held))

    def with_metadata(self, **changes: Any) -> Transitions:
        """The same rows with some metadata replaced."""
        changed = replace(self, metadata=replace(self.metadata, **changes))
        if changes.keys() & {"action_low", "action_high", "obs_names", "action_names"}:
            from mcetm.data.validate import check_columns

            check_columns(changed)
        if "checksum" in vars(self) and changed.metadata.absent == self.metadata.absent:
            vars(changed)["checksum"] = self.checksum  # the same rows; computing it again takes longer
        return changed

    def save(self, path: str | Path) -> None:
        """Write to `.npz`, or to HDF5 in D4RL's layout (`.hdf5`, `.h5`), whole or not at all."""
        from mcetm.data.files import write_file

        write_file(self, path_of("path", path))

    @staticmethod
    def load(path: str | Path) -> Transitions:
        """Read any file this library reads; the counterpart of `save`."""
        from mcetm.data.files import read_file

        return read_file(Path(path), infos=True, min_transitions=1)


def _same(field: str, ours: tuple[str, ...] | None, theirs: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of two logs that are joined; columns that are called otherwise are not the same numbers."""
    if ours is not None and theirs is not None and ours != theirs:
        place = next(i for i, pair in enumerate(zip_longest(ours, theirs)) if len(set(pair)) > 1)
        raise UserError(
            f"The logs cannot be joined: their {field} differ, first in column {place} "
            f"({_shown(ours, place)} and {_shown(theirs, place)})."
        )
    return ours if theirs is None else theirs


def _shown(names: tuple[str, ...], place: int) -> str:
    return f"'{names[place]}'" if place < len(names) else "none"

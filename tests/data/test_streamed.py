"""A log that is streamed has the rows, the sums and the statistics of the same log in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mcetm import Statistics, Transitions, UserError
from mcetm.data import streamed
from mcetm.data.transitions import FIELDS


@pytest.fixture
def log() -> Transitions:
    """41 episodes of 1 to 60 rows, some of which end without a next observation."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 60, 41)
    rows = int(lengths.sum())
    ends = np.cumsum(lengths) - 1
    terminated = np.zeros(rows, bool)
    terminated[ends[::2]] = True
    truncated = np.zeros(rows, bool)
    truncated[ends[1::2]] = True
    obs = rng.normal(3.0, 2.0, (rows, 3)).astype(np.float32)
    following = rng.normal(size=(rows, 3)).astype(np.float32)
    following[ends[::4]] = np.nan
    return Transitions.from_arrays(obs, obs[:, :2], obs[:, 0], following, terminated, truncated)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "_BLOCK", 50)
    monkeypatch.setattr(streamed, "_PIECE", 16)
    monkeypatch.setattr(streamed, "_EXCERPT", 200)


def same(one: Transitions, other: Transitions) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.checksum == other.checksum


@pytest.mark.usefixtures("small_blocks")
def test_a_view_has_the_rows_of_the_same_log_in_memory(log: Transitions) -> None:
    view = log.streamed(64)
    same(view, log)
    same(view.with_next, log.with_next)
    same(view.head(777), log.head(777))
    same(view.select_episodes([7, 3, 20]), log.select_episodes([7, 3, 20]))
    for part, expected in zip(view.split(0.3, seed=1), log.split(0.3, seed=1), strict=True):
        same(part, expected)
        assert part.num_episodes == expected.num_episodes
    one = log.select_episodes([int(np.argmax(log.episode_lengths))])
    for part, expected in zip(one.streamed(16).split(0.2), one.split(0.2), strict=True):
        same(part, expected)
    np.testing.assert_array_equal(view.next_known, log.next_known)
    np.testing.assert_array_equal(view.episode_returns, log.episode_returns)


@pytest.mark.usefixtures("small_blocks")
def test_statistics_of_blocks_are_those_of_all_rows(log: Transitions) -> None:
    found, expected = Statistics.of(log.streamed(64)), Statistics.of(log)
    for name in ("obs", "action", "change", "reward"):
        for part in ("mean", "std"):
            one, other = getattr(getattr(found, name), part), getattr(getattr(expected, name), part)
            np.testing.assert_allclose(one, other, rtol=2e-7)


@pytest.mark.usefixtures("small_blocks")
def test_each_pass_deals_out_every_row_once(log: Transitions) -> None:
    log = log.head(1024)
    numbered = replace(log, reward=np.arange(len(log), dtype=np.float32)).streamed(64)
    windows = [numbered.draw_window(i)["reward"] for i in range(32)]
    assert {len(rows) for rows in windows} == {64}
    for first in (0, 16):
        seen = np.sort(np.concatenate(windows[first : first + 16]))
        np.testing.assert_array_equal(seen, np.arange(1024))
    assert not np.array_equal(windows[0], windows[16])
    np.testing.assert_array_equal(windows[3], numbered.draw_window(3)["reward"])


@pytest.mark.usefixtures("small_blocks")
def test_an_excerpt_is_whole_episodes_of_the_log(log: Transitions) -> None:
    assert log.excerpt() is log
    found = log.streamed(10_000).excerpt()
    assert 140 < len(found) <= 200
    known = {
        tuple(log.obs[start:end, 0]) for start, end in zip(log.episode_starts, log.episode_ends, strict=True)
    }
    for start, end in zip(found.episode_starts, found.episode_ends, strict=True):
        assert tuple(found.obs[start:end, 0]) in known


def test_a_column_that_memory_cannot_hold_is_refused(
    log: Transitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = log.streamed(64)
    monkeypatch.setattr(streamed, "free_memory", lambda: 1000)
    with pytest.raises(UserError, match=r"All 'obs' of arrays at once would take .* excerpt"):
        _ = view.obs

"""Training on windows of a log: the same numbers as in memory where one holds all, and where it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import mcetm
from mcetm import Transitions, UserError
from mcetm.data import streamed
from mcetm.training import windows
from mcetm.training.batches import Batch
from mcetm.training.windows import Windows, feed

SETTINGS = mcetm.GaussianEnsemble(
    members=2, elites=2, width=16, depth=1, steps=60, batch_size=16, validate_every=10
)


@pytest.fixture(scope="module")
def log() -> Transitions:
    return mcetm.collect("pendulum", 1200, "uniform", processes=1)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "_PIECE", 32)
    monkeypatch.setattr(windows, "LASTS", 20)


def fit(log: Transitions, **more: Any) -> Any:
    train, holdout = log.split(0.2, seed=0)
    return mcetm.fit(SETTINGS, train, holdout=holdout, **more)


def same(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_a_window_that_holds_all_gives_the_numbers_of_memory(log: Transitions) -> None:
    assert same(fit(log), fit(log.streamed(5000)))


def test_a_training_that_was_stopped_meets_the_same_windows_again(log: Transitions, tmp_path: Path) -> None:
    small = log.streamed(128)
    whole = fit(small)
    lines = iter(range(99))
    fit(small, folder=tmp_path, callbacks=[lambda line: next(lines) == 2])
    assert same(fit(small, folder=tmp_path), whole)
    assert not same(whole, fit(log))
    with pytest.raises(UserError, match="another configuration: 'window' was 128 and is now 256"):
        fit(log.streamed(256), folder=tmp_path)


def test_a_window_serves_so_many_steps_and_then_the_next(log: Transitions) -> None:
    small = log.streamed(128)
    with feed(Windows(small, lambda batch: batch), lambda seen: seen, 15) as data_at:
        seen = [data_at(step).obs for step in (0, 15, 30, 45, 60)]
    expected = [small.draw_window(number)["obs"] for number in (0, 0, 1, 1, 2)]
    for one, other in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_agent_learns_from_windows(log: Transitions) -> None:
    settings = mcetm.TD3BC(learner=mcetm.TD3(width=16, depth=1, steps=40, batch_size=16))
    one, other = (mcetm.fit(settings, some, seeds=2) for some in (log, log.streamed(5000)))
    assert same(one.learner, other.learner)
    by_windows = mcetm.fit(settings, log.streamed(128), seeds=2)
    assert not same(by_windows.learner, one.learner)


def test_rows_that_fill_up_shares_are_never_drawn(log: Transitions) -> None:
    batch = Batch.of(log.head(21)).filled_up(8)
    assert batch.obs.shape[0] == 24
    assert len(batch) == 21
    drawn = batch.draw(64, key=jax.random.key(0))
    assert len(drawn) == 64
    assert same(drawn, Batch.of(log.head(21)).draw(64, key=jax.random.key(0)))

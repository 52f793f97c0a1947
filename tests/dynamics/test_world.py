"""A world around a model: its reward, its ends, its trust."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Task, Transitions, UserError, World, WorldSettings
from mcetm.dynamics import CalibrationSettings, HeadSettings, LearnedTermination, PairSettings, View
from mcetm.dynamics.reward import TerminationRule
from tests.dynamics.test_model import TOY

HEAD = HeadSettings(width=8, depth=1, steps=20, batch_size=16)
PAIRS = PairSettings(width=8, autoencoder_width=8, steps=20, autoencoder_steps=20, batch_size=16, folds=1)
KEY = jax.random.key(0)
HALFWAY = Task("halfway", "Pendulum-v1", 2, (-1.0,), (1.0,), 10, termination=lambda s: s[..., 0] > 0.5)
ENDLESS = Task("endless", "Pendulum-v1", 2, (-1.0,), (1.0,), 10)


def log(*, ends: bool) -> Transitions:
    rng = np.random.default_rng(0)
    obs, following = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    terminated = (following[:, 0] > 0.5) & ends
    return Transitions.from_arrays(
        obs, rng.uniform(-1, 1, (200, 1)), obs[:, 0], following, terminated, ~terminated
    )


def around(task: Task | None, termination: Literal["auto", "learned", "none"], *, ends: bool = True) -> World:
    train, holdout = log(ends=ends).split(0.2)
    config = WorldSettings(
        reward=HEAD, pairs=PAIRS, termination=termination, calibration=CalibrationSettings(quantile=0.9)
    )
    return World.of(TOY, train, holdout=holdout, config=config, task=task)


@pytest.mark.parametrize(
    ("task", "termination", "ends", "expected"),
    [
        (HALFWAY, "auto", True, TerminationRule),
        (ENDLESS, "auto", True, LearnedTermination),
        (ENDLESS, "auto", False, None),
        (None, "auto", True, LearnedTermination),
        (None, "auto", False, None),
        (HALFWAY, "learned", True, LearnedTermination),
        (HALFWAY, "none", False, None),
    ],
)
def test_a_tasks_rule_ends_it_or_what_was_learned_or_nothing(
    task: Task | None, termination: Any, ends: bool, expected: type | None
) -> None:
    world = around(task, termination, ends=ends)
    assert (None if world.termination is None else type(world.termination)) == expected
    if expected is None:
        assert not bool(world.ends(jnp.zeros(2), jnp.zeros(1), jnp.full(2, 9.0)))
    if expected is TerminationRule:
        found = [bool(world.ends(jnp.zeros(2), jnp.zeros(1), jnp.full(2, x))) for x in (0.4, 0.6)]
        assert found == [False, True]
    assert world.trust is not None
    assert world.trust.next_state is None, "this model has no energies"


def test_a_log_with_terminations_always_has_a_rule_or_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    around(ENDLESS, "auto")
    said = capsys.readouterr().out
    assert "The task 'endless' has no rule for its end (termination=), and the log has" in said
    with pytest.raises(UserError, match=r"The log has \d+ terminations, and with world.termination=none"):
        around(HALFWAY, "none")
    train, holdout = log(ends=False), log(ends=True)
    config = WorldSettings(reward=HEAD, calibration=CalibrationSettings(quantile=0.9), pairs=None)
    with pytest.raises(UserError, match=r"All \d+ terminations of the log are in held-out episodes"):
        World.of(TOY, train, holdout=holdout, config=config)


def test_an_imagined_step_is_one_of_its_candidates() -> None:
    world = around(HALFWAY, "auto")
    obs, action = jnp.array([0.4, 0.0]), jnp.array([0.3])
    seen = set()
    for seed in range(10):
        step = world.imagine(obs, action, View(samples=2), key=jax.random.key(seed))
        assert step.candidates.shape == (3, 2, 2)
        same = np.asarray((step.candidates == step.next_obs).all(axis=-1))
        assert same.sum() == 1
        i, j = (int(place[0]) for place in np.nonzero(same))
        seen.add((i, j))
        assert bool(step.terminated) == bool(step.ended[i, j]) == (float(step.next_obs[0]) > 0.5)
        assert float(step.reward) == pytest.approx(float(world.reward(obs, action, step.next_obs)), rel=1e-4)
    assert len(seen) > 2, "of any member"


@pytest.mark.parametrize("kind", ["spread", "deviation", "members", "none"])
def test_the_uncertainty_is_what_the_view_asks_for(kind: Any) -> None:
    world = World(TOY, lambda o, a, s: s[0])
    obs, action, view = jnp.zeros(2), jnp.array([2.0]), View(samples=200, uncertainty=kind)
    found = float(world.imagine(obs, action, view, key=KEY).uncertainty)
    centre = float(TOY.drift.mean())
    expected = {
        "spread": 0.1 * np.sqrt(2),  # the noise of a member
        "deviation": 2.0 * (3.0 - centre) * np.sqrt(2),  # member 2 is the farthest
        "members": 2.0 * float(TOY.drift.std()) * np.sqrt(2),
        "none": 0.0,
    }
    assert found == pytest.approx(expected[kind], rel=0.6 if kind == "spread" else 0.1, abs=1e-6)

"""A log that does not say what came after its terminations: what everything trained on it makes of that."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from mcetm import CQL, SAC, GaussianEnsemble, Transitions, World, WorldSettings, fit
from mcetm.dynamics import HeadSettings, LearnedTermination


def write_log(path: Path, *, episodes: int = 20, rows: int = 12) -> None:
    """Odd episodes end with a reward of −20, even ones are cut; nothing says what came after."""
    rng = np.random.default_rng(0)
    lines = ["obs_0,obs_1,action_0,reward,terminated,episode"]
    for episode in range(episodes):
        states = rng.normal(size=(rows, 2)).cumsum(axis=0) * 0.1
        for row, (a, b) in enumerate(states):
            ends = episode % 2 == 1 and row == rows - 1
            lines.append(f"{a},{b},{rng.uniform(-1, 1)},{-20 if ends else -1},{int(ends)},{episode}")
    path.write_text("\n".join(lines) + "\n")


def test_a_world_is_learned_from_all_ends_and_their_rewards(tmp_path: Path) -> None:
    write_log(tmp_path / "log.csv")
    log = Transitions.load(tmp_path / "log.csv")
    assert log.terminated.sum() == 10
    assert log.reward[log.terminated].tolist() == [-20.0] * 10
    assert log.metadata.dropped == 10
    train, holdout = log.split(0.2, seed=0)
    settings = GaussianEnsemble(members=2, elites=2, width=8, depth=1, batch_size=16, steps=20)
    model = fit(settings, train, holdout=holdout)
    head = HeadSettings(width=8, depth=1, batch_size=16, steps=20)
    world = World.of(model, train, holdout=holdout, config=WorldSettings(reward=head, pairs=None))
    assert isinstance(world.termination, LearnedTermination)
    step = world.imagine(jnp.zeros(2), jnp.zeros(1), key=jax.random.key(0))
    assert np.isfinite(step.next_obs).all()
    assert np.isfinite(step.reward)


def test_a_penalty_at_next_states_needs_none_at_an_end(tmp_path: Path) -> None:
    """CQL asks the policy for actions at next states, of rows that ended the task too."""
    write_log(tmp_path / "log.csv")
    learner = SAC(width=8, depth=1, batch_size=16, steps=20)
    agent = fit(CQL(learner=learner), Transitions.load(tmp_path / "log.csv"))
    assert np.isfinite(agent.policies[0](np.zeros(2))).all()

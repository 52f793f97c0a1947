"""A log that does not say what came after its terminations: what everything trained on it makes of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mcetm import CQL, SAC, Transitions, fit
from mcetm.cli import main
from mcetm.pipeline.train import train_run
from tests.pipeline.runs import small_config


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


def test_a_run_goes_through_with_all_ends_and_their_rewards(tmp_path: Path) -> None:
    write_log(tmp_path / "log.csv")
    config = small_config(str(tmp_path / "log.csv"), "world.pairs=null", algo="mopo", seeds=1)
    log = Transitions.load(tmp_path / "log.csv")
    assert log.terminated.sum() == 10
    assert log.reward[log.terminated].tolist() == [-20.0] * 10
    assert log.metadata.dropped == 10
    run = train_run(config, tmp_path / "run", log)
    for line in run.outcomes[-1].history:
        assert all(np.isfinite(np.asarray(value, float)).all() for value in line.values())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "10 terminated rows do not say what came after" in page
    assert "10 rows at which the log was cut were dropped" in page
    assert run.models is not None
    assert run.models.world.termination is not None


def test_a_penalty_at_next_states_needs_none_at_an_end(tmp_path: Path) -> None:
    """CQL asks the policy for actions at next states, of rows that ended the task too."""
    write_log(tmp_path / "log.csv")
    learner = SAC(width=8, depth=1, batch_size=16, steps=20)
    agent = fit(CQL(learner=learner), Transitions.load(tmp_path / "log.csv"))
    assert np.isfinite(agent.policies[0](np.zeros(2))).all()


def test_the_output_of_train_says_what_became_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "log.csv")
    arguments = ["--dataset", str(tmp_path / "log.csv"), "--algo", "bc", "--steps", "10", "--seeds", "1"]
    assert main(["train", *arguments, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "10 terminated rows do not say what came after" in said
    assert "10 rows at which the log was cut were dropped" in said

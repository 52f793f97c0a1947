"""Programs are compiled once: later chunks of training and later evaluations find them made."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

import mcetm
from mcetm import Transitions
from mcetm.agents import EvaluationSettings, fit_agent
from mcetm.agents import fit as agent_stage
from mcetm.dynamics import GaussianEnsemble, World, fit_gaussian
from mcetm.pipeline import with_steps
from mcetm.tasks import get_task
from tests.agents.test_agents import Line, limit
from tests.pipeline.runs import small_config


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """Names of the programs compiled since the test began."""
    found: list[str] = []

    def listen(event: str, duration_secs: float, **more: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(more["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


def times(name: str, compiled: list[str]) -> int:
    return sum(name in program for program in compiled)


def test_all_chunks_and_validations_of_a_model_are_one_program(log: Transitions, compiled: list[str]) -> None:
    config = GaussianEnsemble(members=2, elites=1, width=4, depth=1, batch_size=4, steps=8, validate_every=2)
    fit_gaussian(log, log, config, key=jax.random.key(0))
    assert times("run_chunk", compiled) == 1
    assert times("validate", compiled) == 1


def test_all_chunks_rollouts_and_evaluations_of_policies_are_one_program_each(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[int] = []
    measure = agent_stage.mean_returns

    def watched(*arguments: Any) -> list[float]:
        before = len(compiled)
        found = measure(*arguments)
        evaluated.append(len(compiled) - before)
        return found

    monkeypatch.setattr(agent_stage, "mean_returns", watched)
    log = mcetm.collect("pendulum", 200, "uniform", processes=1)
    algorithm = with_steps(small_config(), 30).algorithm
    reward = lambda obs, action, next_obs: next_obs[0]  # noqa: E731
    fit_agent(
        algorithm,
        log,
        World(Line(), reward, trust=limit(1.0)),
        seeds=(0, 1),
        task=get_task("pendulum"),
        evaluation=EvaluationSettings(every=10, episodes=1),
        folder=tmp_path,
    )
    assert times("run_chunk", compiled) == 1
    assert times("_run_between", compiled) == 1
    assert evaluated[1:] == [0, 0]

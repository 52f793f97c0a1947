"""A policy that was saved: it gives finite actions or says why not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcetm import Metadata, Transitions, UserError, load_policy
from mcetm.agents import BC
from mcetm.agents.fit import fit_agent
from mcetm.evaluation.returns import evaluate_policy
from mcetm.tasks.registry import get_task
from tests.conftest import random_fields
from tests.pipeline.runs import write_policy


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_observation_that_is_not_finite_is_refused(tmp_path: Path, value: float) -> None:
    policy = load_policy(write_policy(tmp_path, "pendulum"))
    obs = np.zeros((3, 3), np.float32)
    assert policy(obs).shape == (3, 1)
    obs[1, 2] = value
    with pytest.raises(UserError, match=r"an observation is not finite \(row 1\)"):
        policy(obs)
    with pytest.raises(UserError, match=r"an observation is not finite \(row 0\)"):
        policy(obs[1], rng=np.random.default_rng(0))


def test_an_action_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    policy = load_policy(write_policy(tmp_path, "pendulum"))
    weight, bias = policy.network.mean
    large = replace(policy, network=replace(policy.network, mean=(weight * 1e38, bias)))
    with pytest.raises(UserError, match="its action is not finite"):
        large(np.array([[3e38, -3e38, 3e38]]))


def test_an_action_that_is_not_finite_ends_an_evaluation(tmp_path: Path) -> None:
    network = load_policy(write_policy(tmp_path, "pendulum")).network
    weight, bias = network.mean
    broken = replace(network, mean=(weight, np.full_like(bias, np.nan)))
    with pytest.raises(UserError, match="an action that is not finite in Pendulum-v1"):
        evaluate_policy(get_task("pendulum"), broken, episodes=1)


def test_a_policy_keeps_the_names_of_the_log_it_learned_from(tmp_path: Path) -> None:
    names = Metadata(obs_names=("level", "flow", "p"), action_names=("pump", "valve"))
    log = Transitions.from_arrays(**random_fields(), metadata=names)
    policy = fit_agent(BC(width=8, steps=1), log).policies[0]
    policy.save(tmp_path)
    about = load_policy(tmp_path).about
    assert about["obs_names"] == ["level", "flow", "p"]
    assert about["action_names"] == ["pump", "valve"]

import numpy as np
import pytest

from mcetm.envs import SwingUp, collect
from mcetm.tasks import BehaviourPolicy, UniformPolicy, get_task


def mean_return(policy: BehaviourPolicy, episodes: int = 40) -> float:
    return float(collect("pendulum", 200 * episodes, policy).episode_returns.mean())


def test_catching_makes_the_controller_an_expert_and_noise_alone_does_not() -> None:
    scores = get_task("pendulum").scores
    assert scores is not None
    expert = scores.normalize(mean_return(SwingUp(catch=True)))
    noisy = scores.normalize(mean_return(SwingUp(noise=1.0)))
    uniform = scores.normalize(mean_return(UniformPolicy((-2.0,), (2.0,))))
    assert expert == pytest.approx(100.0, abs=6.0)
    assert uniform == pytest.approx(0.0, abs=12.0)
    assert 25.0 < noisy < 60.0


def test_it_adds_energy_when_there_is_too_little_and_takes_it_when_there_is_too_much() -> None:
    rng = np.random.default_rng(0)
    hanging, spinning = np.array([[-1.0, 0.0, 1.0]]), np.array([[-1.0, 0.0, 8.0]])
    assert SwingUp().sample(hanging.astype(np.float32), rng)[0, 0] > 0.0
    assert SwingUp().sample(spinning.astype(np.float32), rng)[0, 0] < 0.0

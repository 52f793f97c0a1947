"""What a policy knows of where to trust it: the same score that rollouts are cut off by."""

import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import Policy, UserError, World
from mcetm.agents.policy import numpy_policy
from mcetm.dynamics import TrustRegion
from tests.agents.test_agents import Unsure, reward, small_actor


def policy(limit: float = 1.0) -> Policy:
    """In a world whose members differ by |s + a/2|."""
    world = World(Unsure(), reward, trust=TrustRegion(jnp.asarray(limit)))
    return Policy(numpy_policy(small_actor()), {}, world)


def test_trust_on_rows_is_trust_on_each_observation() -> None:
    acting, obs = policy(), np.array([[-3.0], [0.0], [0.4], [5.0]], np.float32)
    found = acting.trust(obs)
    wanted = np.abs(obs + 0.5 * acting(obs))[:, 0]
    np.testing.assert_allclose(found.score, wanted, rtol=1e-5)
    np.testing.assert_array_equal(found.trusted, wanted <= 1.0)
    assert 0 < found.trusted.sum() < 4
    for row, score in zip(obs, found.score, strict=True):
        alone = acting.trust(row)
        assert alone.score.shape == ()
        assert float(alone.score) == pytest.approx(float(score), rel=1e-5)
        assert bool(alone.trusted) == (score <= 1.0)


def test_trust_is_printed_with_its_limit() -> None:
    text = str(policy(0.5).trust(np.array([[0.0], [5.0]])))
    assert text.count("(outside)") >= 1
    assert text.endswith("trusted up to 0.5")
    assert "\n" not in str(policy().trust(np.zeros(1)))


def test_without_a_world_nothing_is_said_of_trust() -> None:
    alone = Policy(numpy_policy(small_actor()), {})
    with pytest.raises(UserError, match="no world beside it"):
        alone.trust(np.zeros(1))
    unlimited = Policy(numpy_policy(small_actor()), {}, World(Unsure(), reward))
    with pytest.raises(UserError, match="nothing is known of where to trust it"):
        unlimited.trust(np.zeros(1))


def test_observations_of_another_width_are_refused() -> None:
    with pytest.raises(UserError, match="observations of width 1"):
        policy().trust(np.zeros((4, 3)))

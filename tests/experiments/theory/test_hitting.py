"""The hitting time of the OOD set, against its definition."""

import numpy as np
from hypothesis import given

from mcetm_experiments.theory import (
    FiniteMDP,
    discounted_hitting,
    hitting_by_state,
    hitting_probability,
    until_hit,
)
from tests.experiments.theory.worlds import EXAMPLES, World, worlds


@given(world=worlds())
@EXAMPLES
def test_hitting_and_costs_are_what_following_the_policy_step_by_step_gives(world: World) -> None:
    mdp, gamma = world.mdp, world.mdp.gamma
    cost = np.abs(world.q)
    alive = mdp.start  # probability of being at s at time t, the set not yet met
    hit = discounted = total = 0.0
    for t in range(2000):
        pairs = alive[:, None] * world.policy
        now = pairs[world.ood].sum()
        hit += now
        discounted += gamma**t * now
        total += gamma**t * (pairs * cost)[~world.ood].sum()
        alive = np.einsum("sa,sat->t", np.where(world.ood, 0.0, pairs), mdp.transition)
    np.testing.assert_allclose(discounted_hitting(mdp, world.policy, world.ood), discounted, atol=1e-9)
    np.testing.assert_allclose(until_hit(mdp, world.policy, world.ood, cost), total, atol=1e-7)
    # What has not arrived after 2,000 steps may still arrive.
    found = float(hitting_probability(mdp, world.policy, world.ood))
    assert hit - 1e-9 <= found <= hit + alive.sum() + 1e-9


def test_what_never_reaches_the_set_has_probability_zero() -> None:
    """State 1 keeps whoever enters, where an undiscounted linear system has no unique solution."""
    transition = np.array([[[0.0, 0.3, 0.7]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    mdp = FiniteMDP(transition, np.zeros((3, 1)), np.array([1.0, 0.0, 0.0]), 0.9)
    ood = np.array([[False], [False], [True]])
    np.testing.assert_allclose(hitting_by_state(mdp, np.ones((3, 1)), ood), [0.7, 0.0, 1.0])

"""Assumption, lemmas and theorem hold where they are said to, and fail where they are said to fail."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcetm_experiments.theory import (
    FiniteEnsemble,
    FiniteMDP,
    assumption_holds,
    bellman,
    bellman_error,
    expected_return,
    hitting_by_state,
    hitting_probability,
    hybrid,
    mobile_bound,
    morel_bound,
    paper_bound,
    plan,
    plan_with_valid_beta,
    proved_bound,
    smallest_beta,
    until_hit,
)
from mcetm_experiments.theory.counterexamples import Example, escape, later, misled
from mcetm_experiments.theory.mdp import state_value
from tests.experiments.theory.worlds import EXAMPLES, World, worlds

CLOSE = 1e-8


def test_beta_star_on_plain_numbers() -> None:
    error = np.array([[1.0, 3.0], [0.0, 8.0]])
    u = np.array([[2.0, 1.0], [0.0, 1.0]])
    nothing = np.zeros((2, 2), bool)
    assert smallest_beta(error, u, nothing) == 8.0
    assert smallest_beta(error, u, np.array([[False, False], [False, True]])) == 3.0
    assert smallest_beta(error + 1, u, nothing) == np.inf  # u = 0 < error
    assert smallest_beta(error + 1, u, ~nothing) == 0.0


@given(world=worlds(), factor=st.floats(0.01, 0.999))
@EXAMPLES
def test_beta_star_is_the_smallest_that_makes_the_assumption_true(world: World, factor: float) -> None:
    error = bellman_error(world.mdp, world.model, state_value(world.q, world.policy))
    beta = smallest_beta(error, world.u, world.ood)
    if np.isfinite(beta):
        assert assumption_holds(error, world.u, world.ood, beta)
        assert beta == 0 or not assumption_holds(error, world.u, world.ood, factor * beta)
    else:
        assert not assumption_holds(error, world.u, world.ood, 1e12)


@given(world=worlds(), more=st.floats(0, 1))
@EXAMPLES
def test_for_one_and_the_same_q_truncating_more_needs_no_larger_beta(world: World, more: float) -> None:
    error = bellman_error(world.mdp, world.model, state_value(world.q, world.policy))
    wider = world.ood | (world.rng.random(world.ood.shape) < more)
    assert smallest_beta(error, world.u, wider) <= smallest_beta(error, world.u, world.ood)


@given(world=worlds(), excess=st.floats(1.0, 3.0))
@EXAMPLES
def test_a_backup_is_pessimistic_on_the_manifold_whenever_the_assumption_holds(
    world: World, excess: float
) -> None:
    error = bellman_error(world.mdp, world.model, state_value(world.q, world.policy))
    beta = excess * smallest_beta(error, world.u, world.ood)
    assume(np.isfinite(beta))
    learned = hybrid(world.model, world.ood, penalty=beta * world.u)(world.q, world.policy)
    assert (learned <= bellman(world.mdp)(world.q, world.policy) + CLOSE)[~world.ood].all()


@given(world=worlds())
@EXAMPLES
def test_with_true_dynamics_truncation_costs_at_most_the_hitting_probability(world: World) -> None:
    """The upper half of the truncation lemma needs shared dynamics, and no sign of the rewards."""
    true = state_value(bellman(world.mdp).evaluate(world.policy), world.policy)
    cut = state_value(hybrid(world.mdp, world.ood).evaluate(world.policy), world.policy)
    hit = hitting_by_state(world.mdp, world.policy, world.ood)
    assert (np.abs(true - cut) <= world.mdp.gamma * world.mdp.largest * hit + CLOSE).all()


@given(world=worlds(lowest=0.0))
@EXAMPLES
def test_with_true_dynamics_and_rewards_never_negative_truncation_is_pessimistic(world: World) -> None:
    true = bellman(world.mdp).evaluate(world.policy)
    assert (hybrid(world.mdp, world.ood).evaluate(world.policy) <= true + CLOSE).all()


@given(world=worlds())
@EXAMPLES
def test_with_the_floor_truncation_is_pessimistic_whatever_the_rewards(world: World) -> None:
    true = bellman(world.mdp).evaluate(world.policy)
    cut = hybrid(world.mdp, world.ood, after=world.mdp.floor).evaluate(world.policy)
    assert (cut <= true + CLOSE).all()


def learned_returns(example: Example) -> tuple[float, float, np.ndarray]:
    """J(π*), J(π̂) with the paper's operator and an exact u = 0, and π*."""
    best = bellman(example.mdp).optimise().policy
    learned = hybrid(example.model, example.ood).optimise().policy
    return float(expected_return(example.mdp, best)), float(expected_return(example.mdp, learned)), best


@given(gamma=st.floats(0.6, 0.99))
@EXAMPLES
def test_with_negative_rewards_the_papers_truncation_is_optimistic_and_its_bound_false(gamma: float) -> None:
    example = escape(gamma)
    leave = np.array([[0.0, 1.0], [1.0, 0.0]])
    true = state_value(bellman(example.mdp).evaluate(leave), leave)
    cut = state_value(hybrid(example.model, example.ood).evaluate(leave), leave)
    assert true[0] < cut[0]  # the lemma says 0 ≤ true − cut
    top, reached, best = learned_returns(example)
    bound = paper_bound(example.mdp, best, np.zeros((2, 2)), 0.0, example.ood)
    assert bound.total == 0.0
    assert top - reached == pytest.approx((gamma - 0.5) / (1 - gamma))
    # Paying the least possible return instead of nothing mends it.
    mended = hybrid(example.model, example.ood, after=example.mdp.floor).optimise().policy
    assert expected_return(example.mdp, mended) == pytest.approx(top)


def test_with_learned_dynamics_the_truncation_lemma_fails_without_any_ood_pair() -> None:
    example = misled()
    policy = np.ones((3, 1))
    true = state_value(bellman(example.mdp).evaluate(policy), policy)
    cut = state_value(hybrid(example.model, example.ood).evaluate(policy), policy)
    assert hitting_probability(example.mdp, policy, example.ood) == 0
    assert true[0] - cut[0] == pytest.approx(0.9 / 0.1)


def test_a_bound_that_sums_up_to_a_finite_horizon_misses_what_comes_later() -> None:
    example = later()
    top, reached, best = learned_returns(example)
    at_start = example.mdp.start @ np.where(example.ood, best, 0.0).sum(axis=-1)
    assert at_start == 0  # P(τ ≤ 0): with H = 0 and u = 0, the right-hand side of the paper is 0
    assert top - reached > 7
    assert top - reached <= proved_bound(example.mdp, best, np.zeros((4, 2)), 0.0, example.ood).total


def test_the_true_process_meets_the_ood_set_more_than_once() -> None:
    """So the discounted count of visits is not bounded by 1, as the paper's proof has it."""
    example = misled()
    everywhere, never = np.ones((3, 1)), np.zeros((3, 1), bool)
    visits = until_hit(example.mdp, np.ones((3, 1)), never, everywhere)
    assert visits == pytest.approx(1 / (1 - 0.9))


def test_two_backups_can_differ_by_twice_v_max() -> None:
    """The paper's proof takes V_max for the length of the interval both lie in."""
    example = misled(0.9)
    value = example.mdp.largest * np.array([0.0, 1.0, -1.0])
    error = bellman_error(example.mdp, example.model, value)
    assert error.max() == pytest.approx(2 * 0.9 * example.mdp.largest)
    assert error.max() > example.mdp.largest


def test_no_beta_covers_every_q_when_members_are_fewer_than_states() -> None:
    """Lemma 1 is stated for any bounded Q: some Q hides the error from the members."""
    rng = np.random.default_rng(0)
    members, ground_truth = rng.dirichlet(np.ones(6), size=3), rng.dirichlet(np.ones(6))
    apart = members - members.mean(axis=0)
    _, _, directions = np.linalg.svd(apart)
    hidden = directions[2:] @ (ground_truth - members.mean(axis=0)) @ directions[2:]  # members see none of it
    assert np.std(members @ hidden) == pytest.approx(0, abs=1e-12)
    assert abs((ground_truth - members.mean(axis=0)) @ hidden) > 1e-3


@given(world=worlds())
@EXAMPLES
def test_the_theorem_as_proved(world: World) -> None:
    """For rewards of any sign, any OOD set, any comparator: pessimism of the fixed point, and the bound."""
    learned = plan_with_valid_beta(world.mdp, world.ensemble, world.ood)
    assume(np.isfinite(learned.beta))
    error = bellman_error(world.mdp, world.model, learned.solution.value)
    assert assumption_holds(error, learned.u, world.ood, learned.beta)
    true = bellman(world.mdp).evaluate(learned.policy)
    assert (learned.solution.value <= state_value(true, learned.policy) + CLOSE).all()
    reached = expected_return(world.mdp, learned.policy)
    for comparator in (bellman(world.mdp).optimise().policy, world.policy):
        gap = expected_return(world.mdp, comparator) - reached
        proved = proved_bound(world.mdp, comparator, learned.u, learned.beta, world.ood)
        paper = paper_bound(world.mdp, comparator, learned.u, learned.beta, world.ood)
        assert gap <= proved.total + CLOSE
        assert proved.consistency <= paper.consistency + CLOSE
        assert proved.truncation <= paper.truncation + CLOSE


@given(world=worlds(lowest=0.0))
@EXAMPLES
def test_the_theorem_as_written_holds_for_rewards_that_are_never_negative(world: World) -> None:
    """With the paper's own operator: truncation pays 0 and nothing is clamped."""
    learned = plan_with_valid_beta(world.mdp, world.ensemble, world.ood, floored=False, tries=40)
    assume(np.isfinite(learned.beta))
    best = bellman(world.mdp).optimise().policy
    gap = expected_return(world.mdp, best) - expected_return(world.mdp, learned.policy)
    assert gap <= paper_bound(world.mdp, best, learned.u, learned.beta, world.ood).total + CLOSE


@given(world=worlds())
@EXAMPLES
def test_where_no_ood_pair_is_met_the_bound_is_that_of_mobile(world: World) -> None:
    best = bellman(world.mdp).optimise().policy
    apart = np.where(best > 0, False, world.ood)  # OOD pairs that the comparator never chooses
    ours = proved_bound(world.mdp, best, world.u, 1.5, apart)
    assert ours.truncation == 0
    paper = paper_bound(world.mdp, best, world.u, 1.5, apart)
    mobile = mobile_bound(world.mdp, best, world.u, 1.5)
    for bound in (ours, paper):
        np.testing.assert_allclose(bound.total, mobile.total, atol=CLOSE)


@given(world=worlds())
@EXAMPLES
def test_the_bound_of_morel_holds_for_truncation_alone(world: World) -> None:
    learned = plan(world.model, world.ensemble, world.ood)
    best = bellman(world.mdp).optimise().policy
    gap = expected_return(world.mdp, best) - expected_return(world.mdp, learned.policy)
    assert gap <= morel_bound(world.mdp, world.model, best, world.ood).total + CLOSE


@pytest.mark.parametrize("outside", [False, True])
def test_neither_term_of_the_bound_can_be_smaller(outside: bool) -> None:
    """A good action that half of the members think bad, or that is OOD, against one that is sure and poor."""
    little, gamma = 1e-6, 0.9
    good, bad, poor = np.eye(4)[1:]
    keep = np.broadcast_to(np.eye(4)[:, None], (4, 2, 4))
    true, wrong = keep.copy(), keep.copy()
    true[0] = [good, poor]
    wrong[0] = [bad, poor]
    reward = np.repeat([[0.0], [1.0], [0.0], [little]], 2, axis=1)
    mdp = FiniteMDP(true, reward, np.eye(4)[0], gamma)
    ensemble = FiniteEnsemble(np.stack([true, wrong]), np.ones((4, 2)))
    ood = np.zeros((4, 2), bool)
    ood[0, 0] = outside
    learned = plan_with_valid_beta(mdp, ensemble, ood)
    best = bellman(mdp).optimise().policy
    gap = expected_return(mdp, best) - expected_return(mdp, learned.policy)
    bound = proved_bound(mdp, best, learned.u, learned.beta, ood)
    assert (bound.truncation > 0) == outside
    assert gap == pytest.approx(float(bound.total), rel=1e-4)
    assert gap > 8

"""The four Bellman operators: contractions whose fixed points are found exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcetm import UserError
from mcetm_experiments.theory import Bellman, FiniteMDP, absorbing_mdp, bellman, garnet, hybrid, recomputed
from mcetm_experiments.theory.counterexamples import undecided
from tests.experiments.theory.worlds import EXAMPLES, World, worlds


def operators(world: World) -> dict[str, Bellman]:
    return {
        "true": bellman(world.mdp),
        "model": bellman(world.model),
        "truncated": hybrid(world.model, world.ood),
        "penalised": hybrid(world.model, world.ood, penalty=3.0 * world.u, after=world.mdp.floor),
    }


@given(world=worlds())
@EXAMPLES
def test_each_operator_contracts_and_is_monotone_with_u_held_fixed(world: World) -> None:
    other = world.q + world.rng.normal(size=world.q.shape)
    higher = world.q + np.abs(other - world.q)
    for name, operator in operators(world).items():
        images = operator(world.q, world.policy), operator(other, world.policy)
        apart = np.abs(images[0] - images[1]).max()
        assert apart <= world.mdp.gamma * np.abs(world.q - other).max() + 1e-12, name
        assert (operator(higher, world.policy) >= images[0] - 1e-12).all(), name


@given(world=worlds())
@EXAMPLES
def test_evaluation_is_the_fixed_point(world: World) -> None:
    for name, operator in operators(world).items():
        q = operator.evaluate(world.policy)
        np.testing.assert_allclose(operator(q, world.policy), q, atol=1e-9, err_msg=name)


@given(world=worlds(), height=st.floats(-5, 5))
@EXAMPLES
def test_the_optimum_is_the_fixed_point_of_the_maximum_and_beats_every_policy(
    world: World, height: float
) -> None:
    for operator in operators(world).values():
        best = operator.optimise()
        np.testing.assert_allclose(best.value, best.q.max(axis=-1), atol=1e-9)
        np.testing.assert_allclose(operator.backup(best.value), best.q, atol=1e-9)
        np.testing.assert_allclose(operator.evaluate(best.policy), best.q, atol=1e-8)
        assert (operator.evaluate(world.policy) <= best.q + 1e-9).all()
        floored = operator.optimise(height)
        np.testing.assert_allclose(np.maximum(operator.backup(floored.value), height), floored.q, atol=1e-9)
        np.testing.assert_allclose(floored.value, floored.q.max(axis=-1), atol=1e-9)


@given(world=worlds(), after=st.floats(-5, 5))
@EXAMPLES
def test_the_absorbing_mdp_has_the_truncated_operator(world: World, after: float) -> None:
    operator = hybrid(world.model, world.ood, after=after)
    absorbing = bellman(absorbing_mdp(world.model, world.ood, after=after))
    actions = world.q.shape[1]
    policy = np.concatenate([world.policy, np.full((1, actions), 1 / actions)])
    q = np.concatenate([world.q, np.full((1, actions), after)])
    image = absorbing(q, policy)
    np.testing.assert_allclose(image[:-1], operator(world.q, world.policy), atol=1e-12)
    np.testing.assert_allclose(image[-1], after, atol=1e-12)
    np.testing.assert_allclose(absorbing.evaluate(policy)[:-1], operator.evaluate(world.policy), atol=1e-9)


def test_a_batch_is_solved_like_its_members_one_by_one() -> None:
    batch = garnet(3, states=6, seed=1)
    together = bellman(batch).optimise(batch.floor)
    for i in range(3):
        one = FiniteMDP(batch.transition[i], batch.reward[i], batch.start[i], batch.gamma)
        np.testing.assert_allclose(bellman(one).optimise(one.floor).q, together.q[i], atol=1e-9)


@given(
    gap=st.floats(0.1, 5.0), gamma=st.floats(0.1, 0.95), excess=st.floats(1.1, 4.0), seed=st.integers(0, 99)
)
@EXAMPLES
def test_with_u_recomputed_from_q_there_may_be_no_fixed_point_or_two(
    gap: float, gamma: float, excess: float, seed: int
) -> None:
    beta = excess * np.sqrt(2) * (1 - gamma / 2)
    policy, nowhere = np.ones((2, 1)), np.zeros((2, 1), bool)

    def image(home: float, away: float, q: np.ndarray) -> np.ndarray:
        return recomputed(*undecided(home, away, gamma), nowhere, beta, q, policy)

    # Away pays `gap` more: wherever Q stands, one application moves home away from it.
    away = gap / (1 - gamma)
    for d in np.random.default_rng(seed).normal(0, 10 * gap, 50):
        q = np.array([[away + d], [away]])
        assert np.abs(image(0.0, gap, q) - q).max() >= gap - 1e-9
    # Home pays `gap` more: two fixed points.
    for sign in (1, -1):
        slope = (1 - gamma / 2) + sign * beta / np.sqrt(2)
        q = np.array([[gap / slope], [0.0]])
        np.testing.assert_allclose(image(gap, 0.0, q), q, atol=1e-9)


def test_with_u_recomputed_nearby_values_can_move_apart() -> None:
    model, ensemble = undecided(0.0, 0.0)
    policy, nowhere = np.ones((2, 1)), np.zeros((2, 1), bool)
    images = [recomputed(model, ensemble, nowhere, 2.0, np.array([[d], [0.0]]), policy) for d in (0.0, -1.0)]
    assert np.abs(images[0] - images[1]).max() > 1.5


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("transition", np.full((2, 1, 2), 0.6), "transition"),
        ("start", np.array([1.5, -0.5]), "start"),
        ("gamma", 1.0, "discount"),
    ],
)
def test_what_is_no_mdp_is_refused(field: str, value: object, words: str) -> None:
    fields = {
        "transition": np.full((2, 1, 2), 0.5),
        "reward": np.zeros((2, 1)),
        "start": np.array([1.0, 0.0]),
        "gamma": 0.9,
    }
    with pytest.raises(UserError, match=words):
        FiniteMDP(**{**fields, field: value})

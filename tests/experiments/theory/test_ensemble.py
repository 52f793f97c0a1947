"""Learned finite models: counts, disagreement, energy and the OOD set."""

import numpy as np
import pytest

from mcetm import UserError
from mcetm_experiments.theory import (
    DatasetRows,
    collect,
    count,
    energy_quantile,
    fit_ensemble,
    garnet,
    ood_set,
)
from mcetm_experiments.theory.families import FAMILIES

COUNTS = np.zeros((3, 2, 3), int)
COUNTS[0, 0] = [3, 4, 3]
COUNTS[1, 0] = [1, 0, 0]


def test_counts_are_how_often_each_transition_was_seen() -> None:
    state, action = np.array([[0, 1, 0], [1, 1, 1]]), np.array([[1, 0, 1], [0, 0, 1]])
    rows = DatasetRows(state, action, next_state=np.array([[1, 0, 1], [0, 1, 1]]))
    counts = count(rows, 2, 2)
    assert counts.shape == (2, 2, 2, 2)
    assert counts[0, 0, 1, 1] == 2
    assert counts[0, 1, 0, 0] == 1
    assert counts.sum() == 6
    assert counts[1, 1].sum() == 3


def test_rows_follow_policy_and_dynamics() -> None:
    mdp = garnet(2, states=4, actions=2, branching=2, seed=3)
    policy = np.tile([0.25, 0.75], (2, 4, 1))
    counts = count(collect(mdp, policy, 20_000, seed=1), 4, 2)
    seen = counts / counts.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(seen, mdp.transition, atol=0.04)
    assert counts[:, :, 1].sum() / counts.sum() == pytest.approx(0.75, abs=0.01)


def test_members_with_much_data_agree_with_the_truth() -> None:
    mdp = garnet(1, states=3, actions=2, branching=2, seed=0)
    counts = np.round(1e6 * mdp.transition).astype(int)
    for member in fit_ensemble(counts).members:
        np.testing.assert_allclose(member, mdp.transition, atol=5e-3)


def test_disagreement_is_the_spread_of_the_next_value() -> None:
    ensemble = fit_ensemble(COUNTS, members=5, seed=2)
    value = np.array([1.0, -2.0, 4.0])
    each = [[[member[s, a] @ value for a in range(2)] for s in range(3)] for member in ensemble.members]
    np.testing.assert_allclose(ensemble.inconsistency(value), np.std(each, axis=0, ddof=1), atol=1e-12)


def test_members_with_one_prior_agree_where_none_has_data() -> None:
    value = np.array([1.0, -2.0, 4.0])
    shared = fit_ensemble(COUNTS, prior="shared").inconsistency(value)
    assert shared[0, 0] > 0
    assert (shared[2] == 0).all()
    assert (fit_ensemble(COUNTS, prior="own").inconsistency(value)[2] > 0).all()


def test_energy_and_its_threshold() -> None:
    ensemble = fit_ensemble(COUNTS, prior="shared", smoothing=0.1)
    joint, conditional = ensemble.energy("joint"), ensemble.energy("conditional")
    np.testing.assert_allclose(conditional, -np.log(ensemble.mean.max(axis=-1)))
    # The conditional energy of a pair seen once is below that of one seen ten times with three outcomes.
    assert conditional[1, 0] < conditional[0, 0]
    assert joint[0, 0] < joint[1, 0] < joint[2, 0]
    assert not ood_set(joint, energy_quantile(joint, 1.0)).any()
    outside = ood_set(joint, energy_quantile(joint, 0.3))
    assert outside[2].all()
    assert not outside[0, 0]


@pytest.mark.parametrize("options", [{"members": 1}, {"smoothing": 0.0}])
def test_an_ensemble_of_one_or_without_a_prior_is_refused(options: dict) -> None:
    with pytest.raises(UserError, match="at least two members"):
        fit_ensemble(COUNTS, **options)
    with pytest.raises(UserError, match="without transitions"):
        fit_ensemble(np.zeros_like(COUNTS))


@pytest.mark.parametrize("name", FAMILIES)
def test_families_differ_between_their_mdps_and_repeat_with_their_seed(name: str) -> None:
    make = FAMILIES[name]
    mdp, again = make(4, seed=1), make(4, seed=1)
    np.testing.assert_array_equal(mdp.transition, again.transition)
    assert np.abs(mdp.transition[0] - mdp.transition[1]).max() > 0
    assert mdp.reward.min() >= 0
    assert mdp.reward.max() <= 1


def test_the_torn_grid_reverses_steps_inside_its_rectangle() -> None:
    mdp = FAMILIES["torn grid"](20, seed=0)
    state = np.arange(36)
    column, towards = state % 6, mdp.transition[:, :, 3].argmax(axis=-1) % 6  # the action "right"
    moved = towards - column
    assert set(np.unique(moved)) <= {-2, -1, 0, 1}
    torn = moved < 0
    assert torn.any(axis=1).all()
    assert torn.mean() < 0.3


def test_the_cliff_ends_everything() -> None:
    mdp = FAMILIES["cliff chain"](5, seed=0)
    assert (mdp.transition[:, -1, :, -1] == 1).all()
    assert (mdp.reward[:, -1] == 0).all()
    assert (mdp.transition[:, -2, 2, -1] == 1).all()  # right from the edge
    assert (np.diff(mdp.reward[:, :-1, 0], axis=1) > 0).all()

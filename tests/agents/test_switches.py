"""What algorithms can be told beside their equations: how critics are used, and what becomes of a cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mcetm import UserError
from mcetm.agents import MCETM, MOBILE
from mcetm.agents.agent import make_agent, refresh
from mcetm.agents.learner import Minibatch
from mcetm.agents.mcetm import mcetm_target
from mcetm.agents.rollout import Branches, roll_out
from mcetm.dynamics import PairSettings, TrustRegion, View, World, fit_pairs
from mcetm.nn.mlp import LayerNormMLP
from tests.agents.test_agents import DATA, LOG, ROLL, SHARED, SMALL, Unsure, limit, reward, sac, world

KEY = jax.random.key(0)
BATCH = Minibatch(DATA.obs[:4], DATA.action[:4], DATA.next_obs[:4], real=4)


def test_a_critic_with_layer_norm_is_bounded_in_every_direction() -> None:
    network = LayerNormMLP(3, 1, width=16, depth=2, key=KEY)
    direction = jax.random.normal(KEY, (3,))
    near, far, farther = (float(network(size * direction)[0]) for size in (1.0, 1e4, 1e6))
    assert near != pytest.approx(far, rel=1e-3)
    assert far == pytest.approx(farther, abs=1e-3), "what reaches the last layer has one length"


def test_targets_take_the_least_of_a_few_critics_and_the_actor_the_mean_of_all() -> None:
    learner = sac(replace(SMALL, critics=6, subset=2, layer_norm=True))
    obs, key = jnp.array([0.3]), jax.random.key(3)
    action = learner.actor.sample(obs, key=key)[0]
    all_values = np.asarray(learner.targets(obs, action))
    seen = set()
    for seed in range(20):
        prepared, _ = learner.prepare(BATCH, key=jax.random.key(seed))
        chosen = np.asarray(prepared.chosen)
        assert len(set(chosen.tolist())) == 2
        assert float(prepared.next_value(obs, key=key)) == pytest.approx(all_values[chosen].min(), rel=1e-5)
        seen.add(tuple(sorted(chosen.tolist())))
    assert len(seen) > 5, "drawn anew"
    assert sac().prepare(BATCH, key=KEY)[0].chosen is None


def test_branches_go_on_in_the_next_generation_and_begin_anew_where_they_end() -> None:
    rollout = replace(ROLL, batch=40, longest=7)
    algorithm = MCETM(learner=SMALL, rollout=rollout, samples=2, tested="disagreement", cut="bootstrap")
    edge = World(Unsure(), reward, trust=TrustRegion(jnp.asarray(1.2)))
    branches = Branches.ended(rollout, DATA.obs[0])
    learner = sac()
    imagine = eqx.filter_jit(lambda b, k: roll_out(edge, learner, DATA, algorithm, b, key=k))
    first = imagine(branches, jax.random.key(1))
    assert first.branches is not None
    assert bool(first.valid.all()), "no row is wasted on a branch that has ended"
    ends = np.asarray(first.rows.after.truncated).reshape(3, 40)
    going = ~ends.any(axis=0)
    assert 0 < going.sum() < 40
    np.testing.assert_array_equal(np.asarray(first.branches.age)[going], 3)
    after = np.asarray(first.rows.after.next_obs).reshape(3, 40, 1)
    np.testing.assert_allclose(np.asarray(first.branches.obs)[going], after[2][going])
    second = imagine(first.branches, jax.random.key(2))
    np.testing.assert_allclose(np.asarray(second.rows.obs)[:40], np.asarray(first.branches.obs))
    branches = second.branches
    for seed in range(3, 8):
        assert branches is not None
        assert int(branches.age.max()) < 7, "the longest begins anew"
        branches = imagine(branches, jax.random.key(seed)).branches


def test_a_branch_ends_when_its_pairs_have_been_as_surprising_as_its_budget_allows() -> None:
    train, holdout = LOG.split(0.2, seed=0)
    brief = PairSettings(width=8, autoencoder_width=8, steps=5, autoencoder_steps=5, batch_size=32, folds=1)
    known = fit_pairs(train, holdout, brief, key=KEY)
    # Nothing is above the ladder, so each pair costs the mean of the usual half: 1 − log 2.
    usual = World(
        Unsure(), reward, trust=TrustRegion(jnp.asarray(9.0), pairs=replace(known, ladder=known.ladder + 1e6))
    )
    rollout = replace(ROLL, batch=8, horizon=6, budget=1.0)
    imagine = lambda roll: roll_out(  # noqa: E731
        usual,
        sac(),
        DATA,
        MOBILE(learner=SMALL, rollout=roll, samples=2),
        Branches.ended(roll, DATA.obs[0]),
        key=KEY,
    )
    assert np.asarray(imagine(rollout).valid).reshape(6, 8).sum(axis=0).tolist() == [4] * 8, "4 · 0.307 > 1"
    assert bool(imagine(replace(rollout, budget=None)).valid.all())
    going = imagine(replace(rollout, longest=50)).branches
    assert going is not None
    np.testing.assert_array_equal(np.asarray(going.age), 2, "begun anew after the fourth step")
    np.testing.assert_allclose(np.asarray(going.spent), 2 * (1 - np.log(2)), rtol=1e-5)
    without = World(Unsure(), reward, trust=TrustRegion(jnp.asarray(9.0)))
    with pytest.raises(UserError, match=r"rollout\.budget"):
        MOBILE(learner=SMALL, rollout=rollout).fit(LOG, world=without)


@pytest.mark.parametrize("cut", ["floor", "bootstrap", "drop"])
def test_what_becomes_of_a_step_that_is_not_trusted(cut: Any) -> None:
    algorithm = MCETM(value_floor=-9.0, penalty=0.0, cut=cut, rollout_rule="selected", **SHARED)
    edge, learner = world(trust=limit(0.8)), sac()
    rows, valid, *_ = roll_out(edge, learner, DATA, algorithm, key=KEY)
    cut_off = np.asarray(rows.after.truncated & rows.after.distrusted.all(axis=(1, 2)))[: ROLL.batch]
    assert 0 < cut_off.sum() < ROLL.batch
    np.testing.assert_array_equal(np.asarray(valid)[: ROLL.batch][cut_off], cut != "drop")
    keys = jax.random.split(KEY, ROLL.batch)
    first = jax.tree_util.tree_map(lambda x: x[: ROLL.batch], rows)
    targets = jax.vmap(lambda row, k: algorithm.target(learner, row, jnp.zeros(()), key=k)[0])(first, keys)
    floored = np.maximum(np.asarray(first.after.reward) + SMALL.discount * -9.0, -9.0)
    same = np.isclose(np.asarray(targets), floored, rtol=1e-5)
    assert same[cut_off].all() == (cut == "floor")


def test_only_what_the_spread_has_beyond_the_logs_own_is_penalised() -> None:
    values, never = jnp.array([[1.0], [3.0], [5.0]]), jnp.zeros((3, 1), bool)
    target = lambda reference: float(  # noqa: E731
        mcetm_target(jnp.zeros(()), values, never, never, weight=1.0, discount=0.5, floor=-99.0,
                     reference=reference)
    )  # fmt: skip
    assert target(None) == pytest.approx(1.5 - 2.0)
    assert target(jnp.asarray(0.5)) == pytest.approx(1.5 - 1.5)
    assert target(jnp.asarray(7.0)) == pytest.approx(1.5), "never a reward for agreeing"


def test_the_logs_own_spread_is_measured_with_every_generation() -> None:
    algorithm = MCETM(value_floor=-9.0, excess=True, **SHARED)
    agent = make_agent(sac(), world(), DATA, algorithm, key=KEY)
    assert agent.reference is not None
    moved, noted = refresh(agent, (DATA, world()), algorithm)
    assert float(noted["reference_spread"]) == float(moved.reference) > 0.0  # pyright: ignore[reportArgumentType]
    assert make_agent(sac(), world(), DATA, replace(algorithm, excess=False), key=KEY).reference is None


def test_a_rollout_may_go_on_with_a_sample_of_low_energy() -> None:
    """Energies are |s'| here, so the choice draws next states towards 0."""
    wide = replace(world().model, noise=1.0)
    step = lambda choice: jax.vmap(  # noqa: E731
        lambda k: World(wide, reward).imagine(
            jnp.zeros(1), jnp.zeros(1), View(samples=8, tested="nothing", choice=choice), key=k
        ).next_obs[0]
    )(jax.random.split(KEY, 300))  # fmt: skip
    any_of_them, low = jnp.abs(step(None)).mean(), jnp.abs(step(0.05)).mean()
    assert float(any_of_them) > 0.6
    assert float(low) < 0.3

"""RAMBO's model turns against the policy, and stays with the log."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import Statistics
from mcetm.agents import RAMBO
from mcetm.agents.agent import AgentState, make_agent, refresh
from mcetm.agents.rambo import Adversarial
from mcetm.agents.sac import SACLearner
from mcetm.dynamics import Gaussian, GaussianEnsemble, GaussianModel, World
from mcetm.training.batches import Batch
from tests.agents.test_agents import DATA, LOG, PLAIN, SHARED, reward, sac


def ensemble() -> GaussianModel:
    make = lambda key: Gaussian(GaussianEnsemble(width=8, depth=1), Statistics.of(LOG), key=key)  # noqa: E731
    members = eqx.filter_vmap(make)(jax.random.split(jax.random.key(0), 3))
    return GaussianModel(members, jnp.array([0, 2]))


def knowing(learner: SACLearner) -> SACLearner:
    """Critics without values of their own: an advantage is then the reward of the next state."""
    silent = jax.tree_util.tree_map(jnp.zeros_like, learner.critics.networks)
    return eqx.tree_at(lambda s: s.critics.networks, learner, silent)


def agent_and_world(rule: Adversarial) -> tuple[AgentState, World]:
    world = World(ensemble(), reward)
    agent = make_agent(knowing(sac()), world, DATA, PLAIN, key=jax.random.key(1))
    return replace(agent, model=rule.begin(ensemble())), world


def outcome(model: Any, agent: AgentState) -> float:
    """Mean reward that a model promises for the policy's actions at the log's states."""

    def one(obs: Array, key: Array) -> Array:
        action = agent.learner.actor.mode(obs)
        return reward(obs, action, model.sample(obs, action, key=key))

    return float(jax.vmap(one)(DATA.obs, jax.random.split(jax.random.key(9), len(DATA))).mean())


def test_the_loss_is_the_published_one() -> None:
    rule, model = Adversarial(weight=0.3, batch_size=6), ensemble()
    agent, world = agent_and_world(rule)
    obs, rows = DATA.obs[:6], DATA.take(jnp.arange(6, 12))
    play, loss = eqx.filter_jit(rule.play), eqx.filter_jit(rule.loss)
    energy = eqx.filter_jit(model.negative_log_density)
    action, following, advantage = play(agent.learner, model, world, obs, key=jax.random.key(2))
    gain = 1.0 - np.asarray(following[:, 0]) ** 2
    np.testing.assert_allclose(advantage, (gain - gain.mean()) / (gain.std() + 1e-6), rtol=1e-3, atol=1e-4)
    found, fit = loss(model, rows, obs, action, following, advantage)
    against = []
    for o, a, s in zip(obs, action, following, strict=True):
        densities = np.exp(-np.asarray(energy(o, a, s), np.float64))
        assert densities.shape == (2,), "elites only"
        against.append(np.log(densities.mean()))
    fits = [np.mean([float(member_loss(model.members, i, rows, j)) for j in range(6)]) for i in range(3)]
    assert float(fit) == pytest.approx(sum(fits), rel=1e-4)
    wanted = 0.3 * np.mean(np.array(against) * np.asarray(advantage)) + sum(fits)
    assert float(found) == pytest.approx(wanted, rel=1e-4)
    # A row that does not say what came after is left out of the fit.
    ended = replace(rows, next_obs=rows.next_obs.at[0].set(jnp.nan))
    _, fit = loss(model, ended, obs, action, following, advantage)
    fits = [np.mean([float(member_loss(model.members, i, rows, j)) for j in range(1, 6)]) for i in range(3)]
    assert float(fit) == pytest.approx(sum(fits), rel=1e-4)


def member_loss(members: Gaussian, i: int, rows: Batch, j: int) -> Array:
    take = lambda tree, k: jax.tree_util.tree_map(lambda x: x[k] if eqx.is_array(x) else x, tree)  # noqa: E731
    return take(members, i).loss(take(rows, j), beta=0.5, bound_weight=0.001)[0]


def test_the_model_learns_to_disappoint_the_policy() -> None:
    promised = {}
    for weight in (3.0, 1e-6):
        rule = Adversarial(weight=weight, updates=100, batch_size=64, learning_rate=3e-3)
        agent, world = agent_and_world(rule)
        changed, played, metrics = eqx.filter_jit(rule)(agent, DATA, world, key=jax.random.key(3))
        promised[weight] = outcome(changed.model.ensemble, agent)
        assert np.isfinite(float(metrics["model_loss"]))
        assert outcome(played.model, agent) == pytest.approx(promised[weight]), "rollouts use the new model"
    assert promised[3.0] < promised[1e-6] - 0.1


def test_without_weight_it_is_plain_model_based_sac() -> None:
    rambo = RAMBO(adversarial=0.0, **SHARED)
    agent, world = agent_and_world(rambo.adversary)
    plain, first = refresh(replace(agent, model=None), (DATA, world), PLAIN)
    same, second = refresh(agent, (DATA, world), rambo)
    assert first.keys() == second.keys()
    for a, b in zip(
        jax.tree_util.tree_leaves(plain.buffer), jax.tree_util.tree_leaves(same.buffer), strict=True
    ):
        np.testing.assert_array_equal(a, b)

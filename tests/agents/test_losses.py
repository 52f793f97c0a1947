"""Losses of the model-free algorithms against plain NumPy transcriptions of the published equations."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import Statistics, Transitions
from mcetm.agents import CQL, EDAC, IQL, SAC, TD3, Algorithm
from mcetm.agents.cql import Conservative
from mcetm.agents.critics import Critics
from mcetm.agents.edac import Diverse
from mcetm.agents.iql import IQLLearner, reward_scale
from mcetm.agents.learner import Learner, Minibatch, Spaces
from mcetm.agents.sac import SACLearner
from mcetm.agents.td3 import TD3Learner
from mcetm.training.batches import Batch
from mcetm.training.metrics import Metrics, Rows

LOW, HIGH = jnp.array([-2.0, -1.0]), jnp.array([2.0, 1.0])
HALF = np.array([2.0, 1.0])
RNG = np.random.default_rng(0)
ROWS = 12
LOG = Transitions.from_arrays(
    RNG.normal(size=(ROWS, 3)),
    RNG.uniform(-1.0, 1.0, (ROWS, 2)) * HALF,
    RNG.normal(size=ROWS),
    RNG.normal(size=(ROWS, 3)),
    np.arange(ROWS) % 4 == 3,
    np.zeros(ROWS, bool),
)
DATA, STATISTICS = Batch.of(LOG), Statistics.of(LOG)
ALL = Minibatch(DATA.obs, DATA.action, DATA.next_obs, real=ROWS)
SMALL = SAC(width=8, depth=1, batch_size=ROWS, steps=100)


# One program of each update compiles in a fraction of the time of all its operations, one by one.
@eqx.filter_jit
def prepare(learner: Learner, batch: Minibatch, key: Array) -> tuple[Any, dict[str, Array]]:
    after, metrics = learner.prepare(batch, key=key)
    return after, _means(metrics)


@eqx.filter_jit
def improve(
    learner: Learner, batch: Minibatch, target: Array, key: Array, turn: int = 0
) -> tuple[Any, dict[str, Array]]:
    after, metrics = learner.improve(batch, target, key=key, turn=turn)
    return after, _means(metrics)


def _means(metrics: Metrics) -> dict[str, Array]:
    return {name: x.values.mean() if isinstance(x, Rows) else x for name, x in metrics.items()}


def sac(**changes: object) -> SACLearner:
    regulariser: Any = changes.pop("regulariser", None)
    config = replace(SMALL, **changes)
    return SACLearner.init(
        config, Spaces(STATISTICS, LOW, HIGH), regulariser=regulariser, key=jax.random.key(0)
    )


def q(critics: Critics, obs: np.ndarray, action: np.ndarray) -> np.ndarray:
    """(critics,) by hand: standardise, one hidden layer of ReLU, one output."""
    found = []
    for i in range(critics.networks.layers[0].weight.shape[0]):
        first, last = critics.networks.layers
        x = np.concatenate(
            [
                (obs - critics.inputs.obs.mean) / critics.inputs.obs.std,
                (action - critics.inputs.action.mean) / critics.inputs.action.std,
            ]
        )
        hidden = np.maximum(np.asarray(first.weight[i]) @ x + np.asarray(first.bias[i]), 0.0)
        found.append(np.asarray(last.weight[i]) @ hidden + np.asarray(last.bias[i]))
    return np.array(found)[:, 0]


def log_sum_exp(x: np.ndarray, axis: int = 0) -> np.ndarray:
    most = x.max(axis=axis, keepdims=True)
    return (most + np.log(np.exp(x - most).sum(axis=axis, keepdims=True))).squeeze(axis)


@pytest.mark.parametrize("kit_compat", [False, True])
@pytest.mark.parametrize("real", [ROWS, 5])
def test_the_conservative_term_is_the_published_one(*, kit_compat: bool, real: int) -> None:
    rule, learner, key = Conservative(weight=3.0, repeats=4, kit_compat=kit_compat), sac(), jax.random.key(5)
    batch = Minibatch(DATA.obs, DATA.action, DATA.next_obs, real=real)
    sample, pushed = eqx.filter_jit(learner.actor.sample), []
    for row, k in enumerate(jax.random.split(key, ROWS)):
        uniform_key, now_key, then_key = jax.random.split(k, 3)
        unit = np.asarray(jax.random.uniform(uniform_key, (4, 2), minval=-1.0))
        kinds = [[(action * HALF, 2 * np.log(0.5)) for action in unit]]
        for obs, draw_key in ((DATA.obs[row], now_key), (DATA.next_obs[row], then_key)):
            drawn = [sample(obs, key=one) for one in jax.random.split(draw_key, 4)]
            kinds.append([(np.asarray(action), float(density)) for action, density in drawn])
        obs = np.asarray(DATA.obs[row])
        logits = np.array([[q(learner.critics, obs, a) - d for a, d in kind] for kind in kinds])
        if kit_compat:  # over the three kinds of each repeat, then the mean over repeats
            pushed.append(log_sum_exp(logits).mean(axis=0))
        else:
            pushed.append(log_sum_exp(logits.reshape(12, -1)))
    shown = [q(learner.critics, np.asarray(DATA.obs[i]), np.asarray(DATA.action[i])) for i in range(real)]
    wanted = 3.0 * (np.mean(pushed, axis=0) - np.mean(shown, axis=0)).sum()
    found = eqx.filter_jit(rule)(learner.critics, learner, batch, key=key)
    assert float(found) == pytest.approx(wanted, rel=1e-4, abs=1e-4)


def test_the_conservative_term_does_not_move_the_actor() -> None:
    learner = sac()
    term = lambda s: Conservative()(learner.critics, s, ALL, key=jax.random.key(0))  # noqa: E731
    slopes = eqx.filter_jit(eqx.filter_grad(term))(learner)
    assert max(float(jnp.abs(x).max()) for x in jax.tree_util.tree_leaves(slopes.actor)) == 0.0


def test_diversity_is_the_cosine_between_action_gradients() -> None:
    learner = sac(critics=4)
    total = 0.0
    for obs, action in zip(np.asarray(DATA.obs), np.asarray(DATA.action), strict=True):
        step = 1e-3
        slopes = np.zeros((4, 2))
        for d in range(2):
            move = np.eye(2)[d] * step
            slopes[:, d] = (
                q(learner.critics, obs, action + move) - q(learner.critics, obs, action - move)
            ) / (2 * step)
        unit = slopes / np.linalg.norm(slopes, axis=1, keepdims=True)
        total += sum(unit[i] @ unit[j] for i in range(4) for j in range(4) if i != j)
    found = Diverse(weight=2.0)(learner.critics, learner, ALL, key=jax.random.key(0))
    assert float(found) == pytest.approx(2.0 * total / ROWS / 3, rel=2e-2)


def test_edacs_slope_is_that_of_the_published_term() -> None:
    learner = sac(critics=3)

    def published(critics: Critics) -> Array:
        slopes = jax.vmap(jax.jacrev(critics, argnums=1))(DATA.obs, DATA.action)
        unit = slopes / jnp.linalg.norm(slopes, axis=2, keepdims=True)
        cosines = jnp.einsum("rid,rjd->rij", unit, unit)
        return 2.0 * (cosines.sum(axis=(1, 2)) - jnp.trace(cosines, axis1=1, axis2=2)).mean() / 2.0

    rule = lambda critics: Diverse(weight=2.0)(critics, learner, ALL, key=jax.random.key(0))  # noqa: E731
    found, wanted = (eqx.filter_jit(eqx.filter_grad(f))(learner.critics) for f in (rule, published))
    for a, b in zip(*map(jax.tree_util.tree_leaves, (found.networks, wanted.networks)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert float(jnp.abs(found.networks.layers[0].weight).max()) > 1e-3


@pytest.mark.parametrize("rule", [Conservative(weight=0.0), Diverse(weight=0.0)])
def test_without_weight_it_is_plain_sac(rule: object) -> None:
    plain, with_rule = sac(critics=3), sac(critics=3, regulariser=rule)
    key, target = jax.random.key(1), jnp.linspace(-1.0, 1.0, ROWS)
    first, second = (improve(learner, ALL, target, key)[0] for learner in (plain, with_rule))
    for a, b in zip(
        jax.tree_util.tree_leaves((first.critics, first.actor, first.targets)),
        jax.tree_util.tree_leaves((second.critics, second.actor, second.targets)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_actor_comes_first_where_it_should() -> None:
    key = jax.random.key(2)
    first, _ = prepare(sac(actor_first=True), ALL, key)
    last, _ = prepare(sac(), ALL, key)
    fresh = sac()
    moved = lambda learner: float(  # noqa: E731
        jnp.abs(learner.actor.network.layers[0].weight - fresh.actor.network.layers[0].weight).max()
    )
    assert moved(first) > 0.0
    assert moved(last) == 0.0
    after, _ = improve(first, ALL, jnp.zeros(ROWS), key)
    assert moved(after) == pytest.approx(moved(first)), "the actor does not move twice"
    assert float(after.done) == 1.0


def test_entropy_is_in_the_backup_or_not() -> None:
    learner, key, row = sac(), jax.random.key(3), jax.tree_util.tree_map(lambda x: x[0], DATA)
    action, log_probability = learner.actor.sample(row.next_obs, key=key)
    least = q(learner.targets, np.asarray(row.next_obs), np.asarray(action)).min()
    for algorithm in (CQL(), EDAC()):
        entropy = algorithm.entropy_backup
        value = least - float(learner.temperature * log_probability) * entropy
        wanted = float(row.reward) + 0.99 * value
        value = learner.next_value(row.next_obs, key=key, entropy=entropy)
        found = algorithm.real_target(learner, row, value)
        assert float(found) == pytest.approx(wanted, rel=1e-4)
    assert (CQL.entropy_backup, EDAC.entropy_backup) == (False, True)
    ended = jax.tree_util.tree_map(lambda x: x[3], DATA)
    assert bool(ended.terminated)
    assert float(Algorithm().real_target(learner, ended, jnp.ones(()))) == pytest.approx(float(ended.reward))


def td3(**changes: object) -> TD3Learner:
    config = replace(TD3(width=8, depth=1, batch_size=ROWS, steps=100), **changes)
    return TD3Learner.init(config, Spaces(STATISTICS, LOW, HIGH), key=jax.random.key(0))


def test_td3_smooths_its_target_action() -> None:
    learner, key, obs = td3(noise=3.0), jax.random.key(4), DATA.next_obs[0]
    noise = np.clip(3.0 * np.asarray(jax.random.normal(key, (2,))), -0.5, 0.5)
    unit = np.clip(np.asarray(learner.slow_actor.mode(obs)) / HALF + noise, -1.0, 1.0)
    wanted = q(learner.targets, np.asarray(obs), unit * HALF).min()
    assert float(learner.next_value(obs, key=key)) == pytest.approx(wanted, rel=1e-4)


def test_td3_rolls_out_with_the_noise_of_its_targets_not_the_actors_untrained_spread() -> None:
    learner, obs = td3(noise=0.2, noise_clip=0.5), DATA.obs[0]
    actions = jax.vmap(lambda k: learner.act(obs, key=k))(jax.random.split(jax.random.key(0), 2000))
    off = np.asarray((actions - learner.actor.mode(obs)) / HALF)
    assert np.abs(off).max() <= 0.5 + 1e-5
    assert off.std(axis=0) == pytest.approx(0.2 * np.ones(off.shape[1]), rel=0.1)


def test_td3_moves_actor_and_slow_copies_every_other_time() -> None:
    learner = td3()
    heads = [learner]
    for i in range(4):
        turn = i % learner.period
        heads.append(improve(heads[-1], ALL, jnp.ones(ROWS), jax.random.key(i), turn)[0])
    first = lambda part: jax.tree_util.tree_leaves(part)[0]  # noqa: E731
    still = lambda a, b, part: bool((first(getattr(a, part)) == first(getattr(b, part))).all())  # noqa: E731
    for part in ("actor", "slow_actor", "targets"):
        assert [still(a, b, part) for a, b in pairwise(heads)] == [
            True,
            False,
            True,
            False,
        ], part
    assert not any(still(a, b, "critics") for a, b in pairwise(heads))


def test_td3s_actor_descends_the_published_loss() -> None:
    learner = td3(delay=1, actor_rate=1e-3)
    after, _ = improve(learner, ALL, jnp.ones(ROWS), jax.random.key(0))

    def loss(actor: eqx.Module) -> Array:
        action = jax.vmap(actor.mode)(DATA.obs)  # pyright: ignore[reportAttributeAccessIssue]
        value = jax.vmap(lambda o, a: after.critics(o, a)[0])(DATA.obs, action)
        weight = 2.5 / jnp.abs(jax.lax.stop_gradient(value)).mean()
        return -weight * value.mean() + (((action - DATA.action) / HALF) ** 2).mean()

    gradient = eqx.filter_grad(loss)(learner.actor)
    # Adam's first step has the size of its rate and the sign of the gradient.
    for before, now, slope in zip(
        jax.tree_util.tree_leaves(learner.actor.network),
        jax.tree_util.tree_leaves(after.actor.network),
        jax.tree_util.tree_leaves(gradient.network),
        strict=True,
    ):
        clear = np.abs(slope) > 1e-4
        np.testing.assert_allclose(np.asarray(now - before)[clear], -1e-3 * np.sign(slope)[clear], rtol=2e-2)


def test_td3_without_value_clones_recorded_rows_only() -> None:
    learner = td3(delay=1, value_weight=0.0, actor_rate=1e-2)
    half = Minibatch(DATA.obs, DATA.action.at[6:].set(100.0), DATA.next_obs, real=6)
    for i in range(400):
        learner, _ = improve(learner, half, jnp.zeros(ROWS), jax.random.key(i))
    off = np.abs(np.asarray(jax.vmap(learner.actor.mode)(DATA.obs) - DATA.action)[:6] / HALF)
    assert off.max() < 0.1, "imagined actions have no say"


def test_iqls_value_critic_and_actor_follow_the_published_losses() -> None:
    config = IQL(width=8, depth=1, learning_rate=1e-3, batch_size=ROWS, steps=100)
    learner = IQLLearner.init(config, Spaces(STATISTICS, LOW, HIGH), key=jax.random.key(0))
    best = np.array(
        [
            q(learner.targets, np.asarray(o), np.asarray(a)).min()
            for o, a in zip(DATA.obs, DATA.action, strict=True)
        ]
    )

    def value_of(value: eqx.Module) -> Array:
        return jax.vmap(value)(DATA.obs)  # pyright: ignore[reportArgumentType]

    prepared, metrics = prepare(learner, ALL, jax.random.key(1))
    above = best - np.asarray(value_of(learner.value))
    wanted = np.where(above > 0.0, 0.7, 0.3) * above**2
    assert float(metrics["value_loss"]) == pytest.approx(wanted.mean(), rel=1e-4)
    row = jax.tree_util.tree_map(lambda x: x[0], DATA)
    value = prepared.next_value(row.next_obs, key=jax.random.key(0))
    target = Algorithm().real_target(prepared, row, value)
    assert float(target) == pytest.approx(float(row.reward + 0.99 * prepared.value(row.next_obs)), rel=1e-5)

    after, metrics = improve(prepared, ALL, jnp.ones(ROWS), jax.random.key(2))
    weight = np.minimum(np.exp(3.0 * (best - np.asarray(value_of(prepared.value)))), 100.0)
    assert float(metrics["weight"]) == pytest.approx(weight.mean(), rel=1e-3)
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert float(metrics["effective_share"]) == pytest.approx(effective / ROWS, rel=1e-3)

    def loss(actor: eqx.Module) -> Array:
        off = (DATA.action - jax.vmap(actor.mode)(DATA.obs)) / HALF  # pyright: ignore[reportAttributeAccessIssue]
        return (weight * (0.5 * off**2).sum(axis=1)).mean()

    slope = eqx.filter_grad(loss)(prepared.actor).network.layers[0].weight
    moved = np.asarray(after.actor.network.layers[0].weight - prepared.actor.network.layers[0].weight)
    clear = np.abs(slope) > 1e-4
    np.testing.assert_allclose(moved[clear], -1e-3 * np.sign(slope)[clear], rtol=2e-2)
    # No row of this log follows another: each is an episode.
    assert reward_scale(LOG) == pytest.approx(1000.0 / float(np.ptp(LOG.reward)), rel=1e-4)
    obs, rows = np.ones((12, 3)), np.ones(12)
    equal = Transitions.from_arrays(obs, np.ones((12, 2)), rows, obs, rows.astype(bool))
    assert reward_scale(equal) == 1.0, "equal returns have no range"


def test_iqls_networks_see_raw_inputs_where_nothing_is_standardised() -> None:
    spaces = Spaces(STATISTICS, LOW, HIGH)
    raw = IQLLearner.init(IQL(width=8, depth=1, standardise=False), spaces, key=jax.random.key(0))
    usual = IQLLearner.init(IQL(width=8, depth=1), spaces, key=jax.random.key(0))
    obs, action = DATA.obs[0], DATA.action[0]
    np.testing.assert_allclose(raw.value(obs), raw.value.network(obs)[0], rtol=1e-6)
    np.testing.assert_allclose(
        raw.value(obs), usual.value(obs * STATISTICS.obs.std + STATISTICS.obs.mean), rtol=1e-4
    )
    np.testing.assert_allclose(
        raw.actor.mode(obs), usual.actor.mode(obs * STATISTICS.obs.std + STATISTICS.obs.mean), rtol=1e-4
    )
    scaled = action * STATISTICS.action.std + STATISTICS.action.mean
    np.testing.assert_allclose(
        q(raw.critics, np.asarray(obs), np.asarray(action)),
        q(usual.critics, np.asarray(obs * STATISTICS.obs.std + STATISTICS.obs.mean), np.asarray(scaled)),
        rtol=1e-4,
    )


def test_critics_are_taught_by_squared_errors_summed_over_critics() -> None:
    learner, target = sac(critics=3), jnp.linspace(-1.0, 1.0, ROWS)
    _, metrics = improve(learner, ALL, target, jax.random.key(0))
    found = np.array(
        [q(learner.critics, np.asarray(o), np.asarray(a)) for o, a in zip(DATA.obs, DATA.action, strict=True)]
    )
    wanted = ((found - np.asarray(target)[:, None]) ** 2).mean(axis=0).sum()
    assert float(metrics["critic_loss"]) == pytest.approx(wanted, rel=1e-4)
    assert learner.critics.only(0).networks.layers[0].weight.shape == (1, 8, 5)

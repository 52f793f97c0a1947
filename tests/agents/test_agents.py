"""SAC, rollouts, the buffer, and the algorithms, on worlds that are known exactly."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from mcetm import Statistics, Transitions, UserError, load_policy
from mcetm.agents import BC, EMPO, MCETM, MOBILE, MOPO, SAC, Algorithm, ModelBased, MOReL, RolloutSettings
from mcetm.agents.agent import AgentState, buffer_gigabytes, learn, make_agent, over_seeds, refresh
from mcetm.agents.bc import fit_bc
from mcetm.agents.learner import Minibatch, Spaces
from mcetm.agents.policy import Policy, numpy_policy
from mcetm.agents.rollout import Buffer, Experience, roll_out
from mcetm.agents.sac import SACLearner
from mcetm.dynamics import EnergyModel, Samples, Threshold, TransitionModel, TrustRegion, View, World
from mcetm.nn.actor import Actor
from mcetm.nn.members import take_members
from mcetm.nn.scaling import Scaling
from mcetm.training.batches import Batch

LOW, HIGH = jnp.array([-1.0]), jnp.array([1.0])


class Line(EnergyModel):
    """s' = s + a/2 and noise, the same in each of three members; energies are |s'|."""

    noise: float = eqx.field(static=True, default=0.0)

    @property
    def num_members(self) -> int:
        return 3

    def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
        drawn = obs[:1] + 0.5 * action + self.noise * jax.random.normal(key, (3, count, 1))
        drawn = jnp.broadcast_to(drawn, (3, count, obs.shape[0]))
        return Samples(drawn, jnp.abs(drawn[..., 0]))

    def energies(self, obs: Array, action: Array, next_obs: Array) -> Array:
        return jnp.full(3, jnp.abs(next_obs[0]))


class Unsure(Line):
    """The same, whose members differ by |s'|."""

    def apart(self, obs: Array, action: Array, *, key: Array) -> Array:
        return jnp.abs(obs[0] + 0.5 * action[0])


def reward(obs: Array, action: Array, next_obs: Array) -> Array:
    return 1.0 - next_obs[0] ** 2


def line_log(rows: int = 512) -> Transitions:
    rng = np.random.default_rng(0)
    obs, action = rng.uniform(-2, 2, (rows, 1)), rng.uniform(-1, 1, (rows, 1))
    following = obs + 0.5 * action
    return Transitions.from_arrays(
        obs, action, 1.0 - following[:, 0] ** 2, following, np.zeros(rows, bool), np.ones(rows, bool)
    )


LOG = line_log()
DATA = Batch.of(LOG)
SMALL = SAC(width=32, actor_rate=3e-3, critic_rate=3e-3, temperature=0.01, batch_size=64, steps=400,
                  discount=0.8, smoothing=0.05)  # fmt: skip
ROLL = RolloutSettings(batch=32, horizon=3, every=50, retain=2, parallel=32, real_share=0.25)
SHARED: dict[str, Any] = {"learner": SMALL, "rollout": ROLL, "samples": 2}
PLAIN = ModelBased(**SHARED)


def sac(config: SAC = SMALL, seed: int = 0) -> SACLearner:
    return SACLearner.init(config, Spaces(Statistics.of(LOG), LOW, HIGH), key=jax.random.key(seed))


def world(**options: Any) -> World:
    return World(Line(), reward, **options)


def limit(energy: float) -> TrustRegion:
    """Next states are trusted up to this energy, pairs always."""
    return TrustRegion(jnp.asarray(jnp.inf), Threshold(jnp.full(3, energy)))


def small_actor() -> Actor:
    scale = Scaling(jnp.array([1.0]), jnp.array([3.0]))
    return Actor(scale, jnp.array([-2.0]), jnp.array([4.0]), width=8, key=jax.random.key(0))


def test_an_actors_log_probability_is_that_of_its_actions() -> None:
    """The density over (−1, 1) integrates to one, and bounds do not change it."""
    actor = Actor(
        Scaling(jnp.zeros(1), jnp.ones(1)),
        jnp.array([-2.0]),
        jnp.array([4.0]),
        width=8,
        key=jax.random.key(0),
    )
    action, log_p = jax.vmap(lambda k: actor.sample(jnp.zeros(1), key=k))(
        jax.random.split(jax.random.key(1), 20_000)
    )
    assert float(action.min()) >= -2.0
    assert float(action.max()) <= 4.0
    # E[1/p] over the law is the length of its support, 2.
    assert float(jnp.exp(-log_p).mean()) == pytest.approx(2.0, rel=0.1)
    np.testing.assert_allclose(actor.unit(actor.bounded(jnp.array([0.3]))), [0.3], rtol=1e-5)


def test_a_generation_follows_the_world_and_stops_where_it_must() -> None:
    edge = world(termination=lambda obs, action, s: s[0] > 1.0, trust=limit(1.5))
    algorithm = MCETM(rollout=replace(ROLL, batch=200), samples=2, rollout_rule="selected")
    imagine = eqx.filter_jit(lambda learner, key: roll_out(edge, learner, DATA, algorithm, key=key))
    rows, valid, metrics, _ = imagine(sac(), jax.random.key(0))
    obs, after = np.asarray(rows.obs[:, 0]), rows.after
    np.testing.assert_allclose(
        after.next_obs[:, 0], obs + 0.5 * np.asarray(rows.action[:, 0]), rtol=1e-4, atol=1e-5
    )
    assert np.array_equal(after.terminated, np.asarray(after.next_obs[:, 0]) > 1.0)
    assert np.array_equal(after.truncated, np.abs(np.asarray(after.next_obs[:, 0])) > 1.5)
    # Rows are step by step: a row is valid while its branch has neither ended nor been cut.
    steps = np.asarray(valid).reshape(3, 200)
    goes_on = ~np.asarray(after.terminated | after.truncated).reshape(3, 200)
    np.testing.assert_array_equal(steps[0], True)
    np.testing.assert_array_equal(steps[1], steps[0] & goes_on[0])
    np.testing.assert_array_equal(steps[2], steps[1] & goes_on[1])
    following = obs.reshape(3, 200)[1][steps[1]]
    np.testing.assert_allclose(
        following, np.asarray(after.next_obs[:, 0]).reshape(3, 200)[0][steps[1]], rtol=1e-6
    )
    assert float(metrics["rollout_length"]) == pytest.approx(steps.sum() / 200)


def held(agent: AgentState) -> Buffer:
    assert agent.buffer is not None
    return agent.buffer


def test_the_ring_is_filled_and_overwritten_and_gives_valid_rows_only() -> None:
    agent = make_agent(sac(), world(), DATA, PLAIN, key=jax.random.key(0))
    rows, valid, *_ = roll_out(world(), agent.learner, DATA, PLAIN, key=jax.random.key(1))
    buffer = held(agent)
    assert int(buffer.count) == 0
    seen: list[set[float]] = []
    for generation in range(4):
        marked = eqx.tree_at(lambda r: r.obs, rows, jnp.full_like(rows.obs, generation + 1.0))
        holes = valid & (jnp.arange(len(valid)) % 3 != 0)
        buffer = buffer.add(marked, holes)
        drawn = buffer.draw(400, key=jax.random.key(generation))
        seen.append(set(np.asarray(drawn.obs).ravel().tolist()))
        assert int(buffer.count) == int(holes.sum()) * min(generation + 1, 2)
    # Never the zeros that were there before, never a generation older than two.
    assert seen == [{1.0}, {1.0, 2.0}, {2.0, 3.0}, {3.0, 4.0}]
    assert ROLL.capacity == len(buffer.valid)
    stored = sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(buffer))
    assert buffer_gigabytes(agent) == pytest.approx(stored / 1e9)


def run(algorithm: ModelBased, seeds: list[int], updates: int) -> AgentState:
    place = world()

    def make(seed: Array) -> AgentState:
        return make_agent(
            SACLearner.init(SMALL, Spaces(Statistics.of(LOG), LOW, HIGH), key=jax.random.key(seed)),
            place, DATA, algorithm, key=jax.random.key(seed + 100),
        )  # fmt: skip

    agents = eqx.filter_vmap(make)(jnp.asarray(seeds))
    between = eqx.filter_jit(over_seeds(lambda a, d: refresh(a, d, algorithm)))

    @eqx.filter_jit
    def chunk(agents: AgentState, data: tuple[Batch, World]) -> tuple[AgentState, dict[str, Array]]:
        arrays, static = eqx.partition(agents, eqx.is_array)

        def body(arrays: AgentState, _: None) -> tuple[AgentState, dict[str, Array]]:
            step = over_seeds(lambda a, d: learn(a, d, algorithm))
            following, metrics = step(eqx.combine(arrays, static), data)
            return eqx.filter(following, eqx.is_array), metrics

        arrays, metrics = jax.lax.scan(body, arrays, None, length=min(updates, ROLL.every))
        return eqx.combine(arrays, static), metrics

    for _ in range(max(1, updates // ROLL.every)):
        agents, _ = between(agents, (DATA, place))
        agents, _ = chunk(agents, (DATA, place))
    return agents


def optimal_value(start: float, discount: float = 0.8) -> float:
    """Value iteration on a fine grid of the line."""
    states, actions = np.linspace(-4, 4, 801), np.linspace(-1, 1, 41)
    value = np.zeros(801)
    for _ in range(100):
        following = np.clip(states[:, None] + 0.5 * actions, -4, 4)
        value = (1.0 - following**2 + discount * np.interp(following, states, value)).max(axis=1)
    return float(np.interp(start, states, value))


def test_with_a_perfect_model_q_is_that_of_value_iteration() -> None:
    agents = run(MCETM(penalty=1.0, value_floor=-100.0, **SHARED), [0], 400)
    learner = take_members(agents, 0).learner
    for start in (-1.5, 0.0, 1.0):
        value = learner.next_value(jnp.array([start]), key=jax.random.key(0))
        assert float(value) == pytest.approx(optimal_value(start), abs=0.8)
    assert float(learner.actor.mode(jnp.array([1.5]))[0]) < -0.5, "it goes home"
    assert float(learner.actor.mode(jnp.array([-1.5]))[0]) > 0.5


def test_seeds_together_are_seeds_alone() -> None:
    algorithm = MOBILE(penalty=0.5, value_floor=-100.0, **SHARED)
    together = run(algorithm, [3, 4, 5], 20)
    alone = run(algorithm, [5], 20)
    pairs = zip(
        jax.tree_util.tree_leaves(eqx.filter(take_members(together, 2).learner, eqx.is_inexact_array)),
        jax.tree_util.tree_leaves(eqx.filter(take_members(alone, 0).learner, eqx.is_inexact_array)),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-3)


def test_mopo_lowers_rewards_by_the_models_spread() -> None:
    noisy, mopo = World(Line(0.3), reward), MOPO(**SHARED)
    after = noisy.imagine(jnp.zeros(1), jnp.zeros(1), mopo.view, key=jax.random.key(0))
    assert float(after.uncertainty) == pytest.approx(0.3, rel=0.5), "estimated from a few samples"
    agent = make_agent(sac(), noisy, DATA, mopo, key=jax.random.key(0))
    agent, _ = refresh(agent, (DATA, noisy), mopo)
    row = jax.tree_util.tree_map(lambda x: x[0], held(agent).draw(1, key=jax.random.key(0)))
    free, paid = (
        MOPO(penalty=weight).target(agent.learner, row, jnp.ones(()), key=jax.random.key(1))[0]
        for weight in (0.0, 2.0)
    )
    assert float(free - paid) == pytest.approx(2.0 * float(row.after.uncertainty), rel=1e-3)


@pytest.mark.parametrize("algorithm", [MCETM(value_floor=-50.0), MOBILE(value_floor=-50.0), MOPO()])
def test_recorded_transitions_are_never_penalised(algorithm: Algorithm) -> None:
    row = jax.tree_util.tree_map(lambda x: x[0], DATA)
    learner = sac()
    key = jax.random.key(0)
    value = learner.next_value(row.next_obs, key=key, entropy=algorithm.entropy_backup)
    assert float(algorithm.real_target(learner, row, value)) == pytest.approx(
        float(row.reward + 0.8 * value), rel=1e-4
    )


def test_recorded_rewards_below_the_floor_are_lifted_to_it() -> None:
    row = jax.tree_util.tree_map(lambda x: x[0], DATA)
    for algorithm in (MCETM(value_floor=5.0), MOBILE(value_floor=5.0)):
        assert float(algorithm.real_target(sac(), row, jnp.asarray(-90.0))) == 5.0
    known = MOReL(value_floor=5.0).real_target(sac(), row, jnp.asarray(-90.0))
    assert float(known) == pytest.approx(float(row.reward) - 72.0), "what was recorded is known"


def test_the_floor_comes_from_the_log_unless_it_is_given() -> None:
    lowest = float(LOG.reward.min())
    found: Any = MCETM(learner=SMALL).on(LOG)
    # Every row of this log is an episode that was cut: it goes on with its reward for ever.
    assert found.floor == pytest.approx(min(0.0, lowest / (1.0 - 0.8)), rel=1e-4)
    given: Any = MCETM(value_floor=-1.0).on(LOG)
    assert given.floor == -1.0
    assert PLAIN.on(LOG) == PLAIN


def test_a_fixed_temperature_is_the_one_that_was_asked_for() -> None:
    assert float(sac().temperature) == pytest.approx(0.01)


def test_a_tuned_temperature_moves_towards_its_entropy_and_keeps_its_bound() -> None:
    config = replace(SMALL, temperature=None, temperature_rate=0.1, most_temperature=0.5)
    learner, target, metrics = sac(config), jnp.zeros(64), {}
    batch = Minibatch(DATA.obs[:64], DATA.action[:64], DATA.next_obs[:64], real=64)
    for i in range(3):
        learner, metrics = eqx.filter_jit(SACLearner.improve)(learner, batch, target, key=jax.random.key(i))
    assert np.asarray(metrics["entropy"]) > -1.0, "a fresh policy is more random than asked for"
    assert float(learner.temperature) <= 0.5


def test_cloning_learns_the_logs_actions() -> None:
    rng = np.random.default_rng(1)
    obs = rng.uniform(-2, 2, (500, 1))
    log = Transitions.from_arrays(
        obs, np.tanh(-obs), np.zeros(500), obs, np.zeros(500, bool), np.ones(500, bool)
    )
    config = BC(width=16, depth=1, batch_size=64, learning_rate=1e-2, steps=300)
    actors, history = fit_bc(log, LOW, HIGH, config, seeds=jnp.array([0, 1]), chunk=100)
    assert max(history[-1]["loss"]) < 0.01
    assert float(take_members(actors, 1).mode(jnp.array([1.0]))[0]) == pytest.approx(-np.tanh(1.0), abs=0.15)


def test_cloning_by_samples_narrows_a_policy() -> None:
    obs = np.linspace(-2, 2, 200)[:, None]
    log = Transitions.from_arrays(
        obs, np.tanh(-obs), np.zeros(200), obs, np.zeros(200, bool), np.ones(200, bool)
    )
    config = BC(width=16, depth=1, batch_size=64, learning_rate=1e-2, steps=300, sampled=True)
    actors, _ = fit_bc(log, LOW, HIGH, config, seeds=jnp.array([0]), chunk=100)
    mean, log_std = take_members(actors, 0).distribution(jnp.array([0.5]))
    assert float(jnp.tanh(mean[0])) == pytest.approx(-np.tanh(0.5), abs=0.15)
    assert float(log_std[0]) < -1.5, "a fresh one has about 0"


def test_a_saved_policy_acts_like_its_actor(tmp_path: Path) -> None:
    actor = Actor(
        Scaling(jnp.array([1.0]), jnp.array([3.0])),
        jnp.array([-2.0]),
        jnp.array([4.0]),
        width=8,
        key=jax.random.key(0),
    )
    Policy(numpy_policy(actor), {"task": "pendulum"}).save(tmp_path / "policy" / "seed-0")
    policy = load_policy(tmp_path)
    obs = np.linspace(-3, 3, 7, dtype=np.float32)[:, None]
    np.testing.assert_allclose(policy(obs), jax.vmap(actor.mode)(jnp.asarray(obs)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(policy(obs[2]), policy(obs)[2], rtol=1e-5)
    assert policy.about["task"] == "pendulum"
    drawn = policy(np.zeros((4000, 1)), rng=np.random.default_rng(0))
    expected = jax.vmap(lambda k: actor.sample(jnp.zeros(1), key=k)[0])(
        jax.random.split(jax.random.key(0), 4000)
    )
    np.testing.assert_allclose(drawn.mean(), expected.mean(), atol=0.1)
    np.testing.assert_allclose(drawn.std(), expected.std(), rtol=0.1)
    with pytest.raises(UserError, match="width 1"):
        policy(np.zeros(3))
    with pytest.raises(UserError, match="holds no policy"):
        load_policy(tmp_path / "elsewhere")
    (tmp_path / "policy" / "seed-0" / "policy.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match="damaged"):
        load_policy(tmp_path)
    assert numpy_policy(actor).action_dim == 1


def test_an_empty_buffer_is_shaped_like_what_comes() -> None:
    agent = make_agent(sac(), world(), DATA, PLAIN, key=jax.random.key(0))
    assert isinstance(agent.buffer, Buffer)
    assert agent.buffer.rows.after.candidates.shape == (ROLL.capacity, 3, 2, 1)


def test_morel_halts_where_the_model_is_unknown() -> None:
    edge = World(Unsure(), reward, trust=TrustRegion(jnp.asarray(1.0)))
    morel = MOReL(value_floor=-7.0, **SHARED)
    agent = make_agent(sac(), edge, DATA, morel, key=jax.random.key(0))
    rows, *_ = roll_out(edge, agent.learner, DATA, morel, key=jax.random.key(1))
    keys = jax.random.split(jax.random.key(2), rows.obs.shape[0])
    value = jax.vmap(lambda s, k: agent.learner.next_value(s, key=k))(rows.after.next_obs, keys)
    rule = lambda row, v, k: morel.target(agent.learner, row, v, key=k)[0]  # noqa: E731
    target = jax.vmap(rule)(rows, value, keys)
    unknown = np.abs(np.asarray(rows.after.next_obs[:, 0])) > 1.0
    assert 0 < unknown.sum() < len(unknown)
    wanted = np.where(unknown, -7.0, np.asarray(rows.after.reward + 0.8 * value))
    np.testing.assert_allclose(target, wanted, rtol=1e-4, atol=1e-4)


def test_empos_penalty_grows_with_the_value_of_what_follows() -> None:
    row = Experience(
        jnp.zeros(1),
        jnp.zeros(1),
        world().imagine(jnp.zeros(1), jnp.zeros(1), EMPO().view, key=jax.random.key(0)),
    )
    assert float(row.after.uncertainty) == pytest.approx(0.0, abs=1e-5), "members agree"
    unsure = eqx.tree_at(lambda r: r.after.uncertainty, row, jnp.asarray(3.0))
    learner, key = sac(), jax.random.key(1)
    worth = learner.next_value(row.after.next_obs, key=key, entropy=True)
    value = float(worth)
    for decay in (None, 100.0, 0.01):
        share = 1.0 if decay is None else np.clip(value / decay, 0.0, 1.0)
        wanted = float(row.after.reward) - 2.0 * share * 3.0 + 0.8 * value
        found = EMPO(penalty=2.0, decay=decay).target(learner, unsure, worth, key=key)[0]
        assert float(found) == pytest.approx(wanted, rel=1e-4)


def test_uncertainty_over_members_is_the_norm_of_their_spread() -> None:
    drawn = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)

    class Given(TransitionModel):
        @property
        def num_members(self) -> int:
            return 4

        def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
            return Samples(jnp.asarray(drawn))

    found = World(Given(), lambda o, a, s: s[0]).imagine(
        jnp.zeros(2), jnp.zeros(1), View(samples=3, uncertainty="members"), key=jax.random.key(0)
    )
    assert float(found.uncertainty) == pytest.approx(np.linalg.norm(drawn[:, 0].std(axis=0)), rel=1e-5)

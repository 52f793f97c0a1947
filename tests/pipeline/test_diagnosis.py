"""The diagnosis of a policy, in a world that is known exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import mcetm
from mcetm import Statistics
from mcetm.agents import MCETM, SAC, Agent
from mcetm.agents.learner import Spaces
from mcetm.agents.sac import SACLearner
from mcetm.dynamics import EnergyModel, Samples, Threshold, TrustRegion, World
from mcetm.pipeline.diagnosis import _settled, diagnose, visit
from mcetm.tasks import get_task


class TruePendulum(EnergyModel):
    """Gymnasium's own equations, in two members of which the second may be off."""

    off: float = eqx.field(static=True, default=0.0)

    @property
    def num_members(self) -> int:
        return 2

    def draw(self, obs: Array, action: Array, count: int, *, key: Array) -> Samples:
        angle, speed = jnp.arctan2(obs[1], obs[0]), obs[2]
        torque = jnp.clip(action[0], -2.0, 2.0)
        speed = jnp.clip(speed + (15.0 * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        angle = angle + speed * 0.05
        truth = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])
        drawn = jnp.stack([truth, truth + self.off])
        return Samples(jnp.repeat(drawn[:, None], count, axis=1), jnp.full((2, count), obs[2]))

    def energies(self, obs: Array, action: Array, next_obs: Array) -> Array:
        return jnp.full(2, obs[2])


def test_a_true_model_has_no_error_and_no_penalty_and_a_wrong_one_has() -> None:
    log, task = mcetm.collect("pendulum", 600, "uniform", processes=1), get_task("pendulum")
    config = SAC(width=8, depth=1, discount=0.9)
    bounds = jnp.array([-2.0]), jnp.array([2.0])
    make = lambda key: SACLearner.init(config, Spaces(Statistics.of(log), *bounds), key=key)  # noqa: E731
    sacs = eqx.filter_vmap(make)(jax.random.split(jax.random.key(0), 2))
    cost = lambda obs, action, following: -(following[2] ** 2)  # noqa: E731
    # Half of all speeds are above the threshold.
    trust = TrustRegion(jnp.asarray(jnp.inf), Threshold(jnp.zeros(2)))
    exact, off = (World(TruePendulum(off), cost, trust=trust) for off in (0.0, 3.0))
    algorithm = MCETM(samples=2, learner=config)
    right, wrong, mixed = (
        diagnose(agent, visit(agent, task, episodes=1), log)
        for worlds in ((exact, exact), (off, off), (exact, off))
        for agent in [Agent(algorithm, sacs.actor, (0, 1), [], sacs, worlds=worlds)]
    )
    assert mixed["error"] == [right["error"][0], wrong["error"][1]], "every seed in its own world"
    assert max(right["error"] + right["held_out_error"]) < 1e-3
    assert min(wrong["held_out_error"]) > 1.0, "every other sample is off by 3"
    # Sampled actions leave some spread of values even where members agree.
    assert all(w > 1.5 * r for w, r in zip(wrong["penalty"], right["penalty"], strict=True))
    assert 0.3 < right["held_out_truncated"][0] < 0.7
    assert right["q"] == wrong["q"], "values do not depend on the model asked"
    assert all(value < 0.0 for value in right["return_to_go"])
    assert right["return_to_go"] == wrong["return_to_go"]


def test_returns_to_go_are_known_where_enough_of_the_episode_is_left() -> None:
    rows = {
        "reward": np.ones(8, np.float32),
        "terminated": np.array([0, 0, 0, 1, 0, 0, 0, 0], bool),
        "truncated": np.array([0, 0, 0, 0, 0, 0, 0, 1], bool),
    }
    settled, returns = _settled(rows, 0.5)
    np.testing.assert_allclose(returns, [1.875, 1.75, 1.5, 1.0] * 2)
    # All of the episode that ended, and the first half of the one that was cut.
    assert settled.tolist() == [0, 1, 2, 3, 4, 5]

"""Bellman targets as equations: limits, signs, and a plain transcription."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mcetm import Transitions
from mcetm.agents.mcetm import mcetm_target
from mcetm.agents.mobile import mobile_target
from mcetm.agents.targets import bellman_target, estimate_value_floor, spread_penalty

VALUES = hnp.arrays(np.float32, (3, 4), elements=st.floats(-50, 50, width=32))
FLAGS = hnp.arrays(bool, (3, 4))


def target(values: np.ndarray, **changes: object) -> float:
    options = {
        "reward": 1.0,
        "ended": np.zeros((3, 4), bool),
        "distrusted": np.zeros((3, 4), bool),
        "weight": 0.5,
        "discount": 0.9,
        "floor": 0.0,
        **changes,
    }
    arrays = {name: jnp.asarray(options.pop(name)) for name in ("reward", "ended", "distrusted")}
    return float(
        mcetm_target(arrays["reward"], jnp.asarray(values), arrays["ended"], arrays["distrusted"], **options)
    )


@given(values=VALUES, ended=FLAGS, distrusted=FLAGS, reward=st.floats(-5, 5), weight=st.floats(0, 3))
@settings(max_examples=40, deadline=None)
def test_it_is_the_papers_equation(
    values: np.ndarray, ended: np.ndarray, distrusted: np.ndarray, reward: float, weight: float
) -> None:
    """r − λ std_i(q̄_i) + γ mean_i(q̄_i), q̄_i = mean_j (1 − ν)(1 − d) q_ij, clamped at 0."""
    means = []
    for i in range(3):
        kept = [0.0 if ended[i, j] or distrusted[i, j] else max(values[i, j], 0.0) for j in range(4)]
        means.append(sum(kept) / 4)
    middle = sum(means) / 3
    spread = (sum((m - middle) ** 2 for m in means) / 2) ** 0.5
    expected = max(0.0, reward - weight * spread + 0.9 * middle)
    found = target(
        values, reward=reward, ended=ended, distrusted=distrusted, weight=weight, spread_of="truncated"
    )
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-3)


@given(
    values=VALUES,
    ended=FLAGS,
    distrusted=FLAGS,
    more=FLAGS,
    weight=st.floats(0, 5),
    floor=st.sampled_from([0.0, -20.0, -200.0]),
    reward=st.floats(-9, -0.1),
    spread_of=st.sampled_from(["values", "ends"]),
)
@settings(max_examples=80, deadline=None)
def test_truncating_never_raises_a_target(
    values: np.ndarray,
    ended: np.ndarray,
    distrusted: np.ndarray,
    more: np.ndarray,
    weight: float,
    floor: float,
    reward: float,
    spread_of: str,
) -> None:
    """With rewards that are all negative too, and whatever the penalty."""
    options = {"ended": ended, "weight": weight, "floor": floor, "reward": reward, "spread_of": spread_of}
    before = target(values, distrusted=distrusted, **options)
    after = target(values, distrusted=distrusted | more, **options)
    assert after <= before + 1e-4


def test_members_that_disagree_about_an_end_are_spread_only_if_ends_count() -> None:
    values, ended = np.full((3, 4), 100.0, np.float32), np.zeros((3, 4), bool)
    ended[0] = True
    mean = 1.0 + 0.9 * 200.0 / 3
    assert target(values, ended=ended, weight=0.1) == pytest.approx(mean)
    spread = np.std([0.0, 100.0, 100.0], ddof=1)
    assert target(values, ended=ended, weight=0.1, spread_of="ends") == pytest.approx(mean - 0.1 * spread)


def test_a_truncation_worth_0_would_be_the_best_of_bad_outcomes() -> None:
    """Why the floor exists: values of −40 against a truncation."""
    values, all_cut = np.full((3, 4), -40.0, np.float32), np.ones((3, 4), bool)
    honest = target(values, reward=-1.0, floor=-90.0)
    assert target(values, reward=-1.0, floor=-90.0, distrusted=all_cut) < honest
    assert honest == pytest.approx(-1.0 - 0.9 * 40)


def test_identical_members_are_not_penalised() -> None:
    values = np.tile(np.array([3.0, 5.0, 1.0, 7.0], np.float32), (3, 1))
    assert target(values, weight=100.0) == pytest.approx(1.0 + 0.9 * 4.0)
    assert float(spread_penalty(jnp.array([4.0]))) == 0.0, "a single member has no spread"


def test_no_threshold_and_no_penalty_is_the_averaged_backup() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert target(values, weight=0.0) == pytest.approx(1.0 + 0.9 * 5.5)


@pytest.mark.parametrize("reward", [2.0, -2.0])
def test_a_threshold_below_everything_leaves_the_reward(reward: float) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = target(values, reward=reward, distrusted=np.ones((3, 4), bool), weight=5.0, spread_of="truncated")
    assert found == max(0.0, reward)


def test_mobiles_penalty_is_not_discounted_and_its_value_is_the_stored_states() -> None:
    values = np.array([[1.0, 3.0], [5.0, 7.0]], np.float32)
    options = {"weight": 0.5, "discount": 0.9, "floor": 0.0}
    found = mobile_target(
        jnp.asarray(1.0), jnp.asarray(False), jnp.asarray(10.0), jnp.asarray(values), **options
    )
    assert float(found) == pytest.approx(1.0 - 0.5 * np.std([2.0, 6.0], ddof=1) + 0.9 * 10.0)
    ended = mobile_target(
        jnp.asarray(1.0), jnp.asarray(True), jnp.asarray(10.0), jnp.asarray(values), **options
    )
    assert float(ended) == 0.0, "clamped"
    assert float(bellman_target(jnp.asarray(1.0), jnp.asarray(True), jnp.asarray(10.0), 0.9)) == 1.0


def test_the_floor_is_the_worst_return_to_go() -> None:
    def log(rewards: list[float], *, terminated: bool) -> Transitions:
        ends = np.zeros(len(rewards), bool)
        ends[-1] = True
        obs = np.arange(len(rewards) + 1.0)[:, None]
        action, done, cut = np.zeros((len(rewards), 1)), ends & terminated, ends & (not terminated)
        return Transitions.from_arrays(obs[:-1], action, rewards, obs[1:], done, cut, min_transitions=1)

    # Ended: nothing more to come. From the second row: −3 + 0.5 · (−2) = −4.
    assert estimate_value_floor(log([1.0, -3.0, -2.0], terminated=True), 0.5) == pytest.approx(-4.0)
    # Cut: it goes on with its mean reward, here −2 for ever, which is worth −4.
    assert estimate_value_floor(log([-2.0, -2.0], terminated=False), 0.5) == pytest.approx(-4.0)
    assert estimate_value_floor(log([1.0, 2.0], terminated=False), 0.5) == 0.0

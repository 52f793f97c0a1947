"""Environments with parts: one vector, laid out as their logs are."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from mcetm import Transitions, UserError, make_card
from mcetm.envs import make_env
from mcetm.envs.simulate import Block, run_block
from mcetm.tasks.flat import FlatEnv, flatten, parts_of, unflatten
from mcetm.tasks.layout import names_of
from mcetm.tasks.policy import UniformPolicy

OBS = spaces.Dict(
    {
        "goal": spaces.Box(-9.0, 9.0, (2,)),
        "arm": spaces.Tuple([spaces.Box(-1.0, 1.0, (2, 2)), spaces.Box(0.0, 5.0, ())]),
    }
)
NAMES = ("arm/0[0]", "arm/0[1]", "arm/0[2]", "arm/0[3]", "arm/1", "goal[0]", "goal[1]")


class Reach(gymnasium.Env[Any, Any]):
    """The reward is what of the action reached it where it should."""

    observation_space = OBS
    action_space = spaces.Dict({"push": spaces.Box(-1.0, 1.0, (1,)), "hold": spaces.Box(0.0, 1.0, (2,))})

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(action["push"][0] + 10.0 * action["hold"].sum())
        return self.observation_space.sample(), reward, False, False, {}


gymnasium.register("FlatReach-v0", entry_point=Reach, max_episode_steps=10)  # pyright: ignore[reportArgumentType]


@given(seed=st.integers(0, 1000))
def test_flattening_loses_nothing(seed: int) -> None:
    OBS.seed(seed)
    value = OBS.sample()
    vector = flatten(value, parts_of(OBS, "x"))
    assert vector.shape == (7,)
    again = unflatten(vector, OBS)
    np.testing.assert_array_equal(again["goal"], value["goal"])
    np.testing.assert_array_equal(again["arm"][0], value["arm"][0])
    np.testing.assert_array_equal(vector, spaces.flatten(OBS, value))


def test_every_number_has_a_name_that_says_where_it_was() -> None:
    assert names_of(parts_of(OBS, "x")) == NAMES
    assert names_of(parts_of(spaces.Box(0.0, 1.0, (3,)), "x")) is None


def test_an_environment_with_parts_is_stepped_with_vectors() -> None:
    env = make_env("FlatReach-v0", {})
    assert isinstance(env, FlatEnv)
    assert (env.observation_space.shape, env.action_space.shape) == ((7,), (3,))
    action, obs = env.action_space, env.observation_space
    assert isinstance(action, spaces.Box)
    assert isinstance(obs, spaces.Box)
    np.testing.assert_array_equal(action.low, [0.0, 0.0, -1.0])
    np.testing.assert_array_equal(obs.high, [1.0, 1.0, 1.0, 1.0, 5.0, 9.0, 9.0])
    env.reset(seed=0)
    assert env.step(np.array([0.5, 0.25, -1.0]))[1] == 6.5, "hold comes before push"


def test_a_policy_sees_in_the_simulator_what_a_log_has() -> None:
    policy = UniformPolicy((0.0, 0.0, -1.0), (1.0, 1.0, 1.0))
    rows = run_block(Block("FlatReach-v0", {}, 7, 3, (policy,), lanes=2, lane_steps=10, seed=(0,)))
    assert rows["obs"].shape == (20, 7)
    np.testing.assert_array_equal(rows["next_obs"][:9], rows["obs"][1:10])
    np.testing.assert_allclose(rows["reward"], rows["action"] @ np.array([10.0, 10.0, 1.0]), rtol=1e-5)


class Odd(Reach):
    def __init__(self, kind: str) -> None:
        if kind == "choices":
            self.action_space = spaces.Discrete(3)
        elif kind == "images":
            self.observation_space = spaces.Dict({"camera": spaces.Box(0, 255, (8, 8, 3), np.uint8)})
        else:
            self.observation_space = spaces.Box(0, 255, (8, 8), np.uint8)


gymnasium.register("FlatOdd-v0", entry_point=Odd)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            "choices",
            "FlatOdd-v0 has actions of the space Discrete.3.; only continuous ones are supported, a Box",
        ),
        ("images", r"has observations \('camera'\) that are images, of shape \(8, 8, 3\); only vectors"),
        ("grey", r"has observations that are images, of shape \(8, 8\); only vectors of numbers"),
    ],
)
def test_what_is_not_supported_is_one_sentence(kind: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make_env("FlatOdd-v0", {"kind": kind})


def test_actions_that_look_like_choices_are_asked_about() -> None:
    rng = np.random.default_rng(0)
    action = np.stack([rng.integers(0, 3, 40), rng.normal(size=40), np.ones(40)], axis=1)
    log = Transitions.from_arrays(rng.normal(size=(40, 2)), action, np.ones(40))
    found = [warning for warning in make_card(log).warnings if "choice" in warning]
    assert len(found) == 1
    assert "0 (0, 1, 2); only continuous actions are supported" in found[0]

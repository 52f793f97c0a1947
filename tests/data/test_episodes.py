from typing import Any

import numpy as np
import pytest

from mcetm import UserError
from mcetm.data import Transitions
from tests.conftest import assert_same, random_fields


def episodes() -> list[dict[str, Any]]:
    fields = random_fields()
    result = []
    for start, end in ((0, 7), (7, 12), (12, 21)):
        obs = np.concatenate([fields["obs"][start:end], fields["next_obs"][end - 1 : end]])
        result.append(
            {
                "obs": obs,
                "action": fields["action"][start:end],
                "reward": fields["reward"][start:end],
                "terminated": bool(fields["terminated"][end - 1]),
            }
        )
    return result


def test_episodes_of_t_plus_one_observations(log: Transitions) -> None:
    assert_same(Transitions.from_episodes(episodes()), log)


def test_episodes_with_successors_and_flags_per_step(log: Transitions) -> None:
    given = episodes()
    for episode in given:
        obs = episode["obs"]
        flags = [False] * (len(obs) - 2) + [episode["terminated"]]
        episode |= {"obs": obs[:-1], "next_obs": obs[1:], "terminated": flags}
    assert_same(Transitions.from_episodes(given), log)


def test_as_many_observations_as_actions_say_not_where_the_last_of_them_led() -> None:
    given = episodes()
    for episode in given:
        episode["obs"] = episode["obs"][:-1]
    log = Transitions.from_episodes(given)
    fields = random_fields()
    labels = np.repeat([0, 1, 2], (7, 5, 9))
    same = fields | {"next_obs": None, "truncated": None}
    assert_same(log, Transitions.from_arrays(**same, episode=labels))
    assert (log.metadata.dropped, int((~log.next_known).sum())) == (2, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"reward": [1.0]}, "episode 1: 'reward' has 1 rows, but the episode has 5 steps"),
        ({"obs": np.zeros((1, 3))}, "episode 1: has no complete step"),
        ({"obs": np.zeros((6, 4))}, "obs: differs in width between episodes"),
        ({"terminated": [True, False]}, "episode 1: 'terminated' has 2 rows"),
        ({"terminated": [float("nan")] * 5}, "terminated, row 7: must be 0 or 1, but is nan"),
        ({"reward": 1.0}, "episode 1: 'reward' is a single number"),
    ],
)
def test_a_faulty_episode_is_named(change: dict[str, Any], sentence: str) -> None:
    given = episodes()
    given[1] |= change
    with pytest.raises(UserError, match=sentence):
        Transitions.from_episodes(given)


def test_a_field_missing_from_some_episodes_is_named() -> None:
    given = episodes()
    del given[1]["reward"]
    with pytest.raises(UserError, match="reward: is in 2 of 3 episodes only"):
        Transitions.from_episodes(given)


def test_no_episodes() -> None:
    with pytest.raises(UserError, match="there are none"):
        Transitions.from_episodes([])

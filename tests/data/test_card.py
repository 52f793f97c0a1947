import json
from pathlib import Path

import numpy as np
import pytest

from mcetm import Task
from mcetm.data import Metadata, Transitions, make_card
from mcetm.tasks import registry
from tests.conftest import random_fields


def test_counts_and_summaries(log: Transitions) -> None:
    card = make_card(log)
    assert (card.transitions, card.episodes, card.terminations, card.truncations) == (21, 3, 1, 2)
    assert (card.lengths.minimum, card.lengths.median, card.lengths.maximum) == (5, 7, 9)
    assert card.returns is not None
    assert card.returns.mean == pytest.approx(log.episode_returns.mean())
    assert sum(card.lengths.histogram) == 3
    assert card.continuity.checked == 18
    assert card.continuity.broken == 0


def test_a_break_inside_an_episode_is_found() -> None:
    fields = random_fields((10, 10))
    fields["next_obs"][4] += 1.0
    card = make_card(Transitions.from_arrays(**fields))
    assert card.continuity.broken == 1
    assert card.continuity.first_broken_row == 4
    assert card.continuity.largest_gap == pytest.approx(1.0, rel=1e-5)
    assert any("first: row 4" in warning for warning in card.warnings)


def test_constant_and_duplicate_columns() -> None:
    fields = random_fields(obs_dim=6)
    for name in ("obs", "next_obs"):
        fields[name][:, 1] = 3.0
        fields[name][:, 4] = fields[name][:, 2]
        fields[name][:, 5] = fields[name][:, 2]
    card = make_card(Transitions.from_arrays(**fields))
    assert card.obs.constant == (1,)
    assert card.obs.duplicates == ((2, 4), (2, 5))
    assert card.action.constant == card.action.duplicates == ()


def test_columns_that_agree_almost_everywhere_are_not_duplicates() -> None:
    fields = random_fields((300,), obs_dim=2)
    fields["obs"][:, 1] = fields["obs"][:, 0]
    fields["obs"][123, 1] += 0.5
    assert make_card(Transitions.from_arrays(**fields)).obs.duplicates == ()


def test_saturated_actions_are_counted() -> None:
    fields = random_fields((10, 10), action_dim=2)
    fields["action"] = np.full((20, 2), 0.5, np.float32)
    fields["action"][:5] = 1.0
    fields["action"][5:7, 0] = -1.0
    bounds = Metadata(action_low=(-1.0, -1.0), action_high=(1.0, 1.0))
    assert make_card(Transitions.from_arrays(**fields, metadata=bounds)).saturated == pytest.approx(12 / 40)


def test_without_bounds_no_action_is_called_saturated(log: Transitions) -> None:
    assert make_card(log).saturated is None


def test_scores_of_a_known_task() -> None:
    fields = random_fields((10, 10), obs_dim=11, action_dim=3)
    fields["reward"][:] = 323.43
    fields["next_obs"][:, 0], fields["obs"][:, 0] = 1.2, 1.2
    fields["next_obs"][:, 1], fields["obs"][:, 1] = 0.0, 0.0
    card = make_card(Transitions.from_arrays(**fields, task="hopper"))
    assert card.normalized_score == pytest.approx((100.0, 0.0), abs=1e-3)
    # The log says that its second episode terminated, yet its last state is healthy.
    assert card.rule_mismatches == 1


def test_a_log_without_rewards_has_no_returns() -> None:
    fields = random_fields()
    card = make_card(Transitions.from_arrays(fields["obs"], next_obs=fields["next_obs"]))
    assert card.returns is card.reward is card.normalized_score is None
    assert any("no rewards" in warning for warning in card.warnings)
    assert any("no actions" in warning for warning in card.warnings)


def test_the_card_is_plain_json(log: Transitions) -> None:
    content = json.loads(json.dumps(make_card(log).to_dict(), allow_nan=False))
    assert content["transitions"] == 21
    assert content["metadata"]["absent"] == []


def test_the_card_of_real_data(real_data: Path) -> None:
    from mcetm.data import read_d4rl

    card = make_card(read_d4rl(real_data / "d4rl" / "walker2d_medium-v2.hdf5"))
    assert card.normalized_score is not None
    assert 70 < card.normalized_score[0] < 85
    assert card.warnings == ()


def test_a_task_without_a_rule_for_its_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("ruleless", "Pendulum-v1", 3, (-1.0,) * 2, (1.0,) * 2, 10)
    monkeypatch.setattr(registry, "_TASKS", {**registry._TASKS, "ruleless": task})
    log = Transitions.from_arrays(**random_fields(), task="ruleless")
    assert any("the task 'ruleless' has no rule for its end" in words for words in make_card(log).warnings)

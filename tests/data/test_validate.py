from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcetm import UserError
from mcetm.data import DataError, Metadata, Transitions, make_card
from tests.conftest import assert_same, random_fields


def faults_of(fields: dict[str, Any], **options: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        Transitions.from_arrays(**fields, **options)
    return [str(fault) for fault in caught.value.faults]


def changed(name: str, row: Any, value: float, dtype: Any = None) -> dict[str, Any]:
    fields: dict[str, Any] = random_fields()
    fields[name] = fields[name].astype(dtype or fields[name].dtype)
    fields[name][row] = value
    return fields


@pytest.mark.parametrize("name", ["obs", "action", "reward", "next_obs"])
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "is NaN"), (np.inf, "is infinite"), (-np.inf, "is infinite")]
)
def test_not_a_number_is_named_by_field_and_row(name: str, value: float, word: str) -> None:
    which = "" if name == "reward" else "component 0 "
    also = ", and the row ends no episode" if name == "next_obs" and np.isnan(value) else ""
    assert faults_of(changed(name, 4, value)) == [f"{name}, row 4: {which}{word}{also}"]


def test_the_count_of_further_bad_rows_is_told() -> None:
    assert faults_of(changed("reward", slice(3, 8), np.nan)) == [
        "reward, row 3: is NaN (and 4 more rows are not finite)"
    ]


def test_a_number_too_large_for_single_precision_is_not_called_infinite() -> None:
    assert faults_of(changed("obs", (2, 1), 1e300, np.float64)) == [
        "obs, row 2: component 1 is too large, 1e+300"
    ]


def test_every_fault_is_found_in_one_pass() -> None:
    fields: dict[str, Any] = random_fields()
    fields["obs"][3] = np.nan
    fields["action"] = fields["action"][:-1]
    fields["reward"] = ["a"] * 21
    fields["terminated"] = np.full(21, 2)
    fields["next_obs"] = fields["next_obs"][:, :2]
    assert faults_of(fields) == [
        "obs, row 3: component 0 is NaN",
        "reward, row 0: is not numeric, 'a'",
        "terminated, row 0: must be 0 or 1, but is 2 (and 20 more rows)",
        "action: has 20 rows, but obs has 21",
        "next_obs: has 2 columns, but obs has 3",
    ]


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("obs", np.zeros((21, 2, 2)), "obs: must have one row of numbers each, but its shape is (21, 2, 2)"),
        ("reward", np.zeros((21, 2)), "reward: must have one number per row, but its shape is (21, 2)"),
        ("obs", [[1.0], [1.0, 2.0]], "obs: rows differ in length"),
        ("obs", np.zeros((21, 0)), "obs: has no columns"),
        ("action", np.full((21, 2), 1j), "action, row 0: is not numeric, '1j'"),
    ],
)
def test_wrong_shapes_and_kinds(name: str, value: Any, fault: str) -> None:
    assert fault in faults_of(random_fields() | {name: value})


def test_actions_outside_their_bounds() -> None:
    bounds = Metadata(action_low=(-1.0, -1.0), action_high=(1.0, 1.0))
    faults = faults_of(changed("action", (5, 1), 1.2), metadata=bounds)
    assert faults == ["action, row 5: component 1 is 1.2, outside its bounds [-1, 1]"]
    # Rounding may carry an action over by a hair.
    Transitions.from_arrays(**changed("action", (5, 1), 1.000001), metadata=bounds)


def test_a_task_gives_the_bounds_and_the_width() -> None:
    fields = random_fields(obs_dim=3, action_dim=1)
    log = Transitions.from_arrays(**fields, task="pendulum")
    assert (log.metadata.action_low, log.metadata.action_high) == ((-2.0,), (2.0,))
    assert faults_of(fields, task="hopper") == [
        "obs: has 3 columns, but task 'hopper' has 11 observations",
        "action: has 1 columns, but the action space has 3",
    ]


def test_too_few_transitions() -> None:
    fields = random_fields((4, 3))
    assert faults_of(fields) == ["obs: only 7 usable transitions, and at least 10 are needed"]
    assert faults_of(fields, min_transitions=8) == [
        "obs: only 7 usable transitions, and at least 8 are needed"
    ]
    assert len(Transitions.from_arrays(**fields, min_transitions=7)) == 7


def test_no_rows() -> None:
    assert "obs: has no rows" in faults_of({k: v[:0] for k, v in random_fields().items()})


def test_a_terminated_row_without_a_successor_is_kept_and_a_cut_one_dropped_and_counted() -> None:
    fields = random_fields((7, 5, 9))
    log = Transitions.from_arrays(**(fields | {"next_obs": None}))
    assert log.metadata.dropped == 2
    assert log.episode_lengths.tolist() == [6, 5, 8]
    assert log.truncated.sum() == 2
    assert log.terminated.tolist() == [False] * 10 + [True] + [False] * 8
    assert log.reward[10] == fields["reward"][11], "the reward of the end is kept"
    assert np.flatnonzero(~log.next_known).tolist() == [10]
    full = Transitions.from_arrays(**fields)
    inside = ~(full.terminated | full.truncated)
    seen = log.with_next
    np.testing.assert_array_equal(seen.next_obs, full.next_obs[inside])
    assert seen.episode_lengths.tolist() == [6, 4, 8]
    assert not seen.terminated.any()
    warnings = make_card(log).warnings
    assert any("1 terminated row does not say what came after" in warning for warning in warnings)
    assert any("2 rows at which the log was cut were dropped" in warning for warning in warnings)
    assert full.with_next is full, "a log that says everything stays as it is"


def test_empty_successors_are_unknown_at_ends_and_a_fault_inside_episodes(tmp_path: Path) -> None:
    fields = random_fields((7, 5, 9))
    ends = fields["terminated"] | fields["truncated"]
    holes: dict[str, Any] = fields | {"next_obs": np.where(ends[:, None], np.nan, fields["next_obs"])}
    log = Transitions.from_arrays(**holes)
    assert_same(log, Transitions.from_arrays(**(fields | {"next_obs": None})))
    for name in ("log.npz", "log.hdf5"):
        log.save(tmp_path / name)
        assert_same(Transitions.load(tmp_path / name), log)
    holes["next_obs"][3] = np.nan
    assert faults_of(holes) == ["next_obs, row 3: component 0 is NaN, and the row ends no episode"]
    holes["next_obs"][3] = [1.0, np.nan, 1.0]
    assert faults_of(holes) == ["next_obs, row 3: component 1 is NaN"]


def test_nothing_but_ends_can_be_learned_from_but_not_by_a_model() -> None:
    """One decision an episode: its reward is all there is."""
    rng = np.random.default_rng(0)
    log = Transitions.from_arrays(
        rng.normal(size=(20, 2)), rng.normal(size=(20, 1)), np.ones(20), None, np.ones(20)
    )
    assert len(log) == log.num_episodes == 20
    assert make_card(log).without_next == 20
    with pytest.raises(UserError, match="no row whose next observation is known"):
        _ = log.with_next


def test_next_obs_never_crosses_an_episode_end() -> None:
    # Observations name their episode, so that a successor from another one shows.
    obs = np.repeat([10.0, 20.0, 30.0], 6)[:, None] + np.tile(np.arange(6.0), 3)[:, None] / 10
    ends = np.tile([False] * 5 + [True], 3)
    log = Transitions.from_arrays(obs=obs, terminated=ends, min_transitions=1)
    seen = log.with_next
    assert len(seen) == 15
    assert (np.floor(seen.obs / 10) == np.floor(seen.next_obs / 10)).all()
    np.testing.assert_allclose(seen.next_obs - seen.obs, 0.1, atol=1e-5)


def test_missing_time_outs_are_found_where_the_path_breaks() -> None:
    fields = random_fields((7, 5, 9))
    log = Transitions.from_arrays(**(fields | {"truncated": None}))
    np.testing.assert_array_equal(log.truncated, fields["truncated"])
    np.testing.assert_array_equal(log.terminated, fields["terminated"])


def test_time_outs_that_mark_nothing_are_no_time_outs() -> None:
    fields = random_fields((7, 5, 9))
    nothing = np.zeros(21, bool)
    fields["truncated"], marked = nothing, fields["truncated"]
    log = Transitions.from_arrays(**fields)
    np.testing.assert_array_equal(log.truncated, marked)
    log = Transitions.from_arrays(
        obs=np.zeros((30, 1)), terminated=np.zeros(30), truncated=np.zeros(30), time_limit=10
    )
    assert log.episode_lengths.tolist() == [9, 9, 9]


def test_one_outlier_does_not_hide_where_episodes_end() -> None:
    fields = random_fields((7, 5, 9))
    fields["obs"][3] = fields["next_obs"][2] = 1e6
    log = Transitions.from_arrays(**(fields | {"truncated": None}))
    assert log.episode_lengths.tolist() == [7, 5, 9]


def test_a_log_with_no_ends_at_all_is_called_one_episode() -> None:
    log = Transitions.from_arrays(obs=np.zeros((30, 1)))
    assert log.num_episodes == 1
    assert any("ONE episode" in note for note in log.metadata.notes)


def test_senseless_options_are_refused() -> None:
    with pytest.raises(UserError, match="'time_limit' should be a whole number from 1"):
        Transitions.from_arrays(**random_fields(), time_limit=-3)
    assert faults_of({"obs": [[1.0]]}, min_transitions=0) == [
        "obs: only 0 usable transitions, and at least 1 are needed"
    ]
    half = Metadata(action_low=(-1.0, -1.0))
    assert faults_of(random_fields(), metadata=half) == [
        "action: has a lower or an upper bound only; give both or none"
    ]
    odd = Metadata(action_low=(-1.0,), action_high=(1.0, 1.0))
    assert faults_of(random_fields(), metadata=odd) == ["action: has 1 lower and 2 upper bounds"]
    assert faults_of(random_fields(), infos={"x": 3.0}) == ["infos/x: has the shape (), but obs has 21 rows"]


def test_without_time_outs_and_successors_the_time_limit_cuts() -> None:
    terminated = np.zeros(23, bool)
    terminated[7] = True  # then 15 more rows: cut at 8 + 10 = row 17
    log = Transitions.from_arrays(obs=np.arange(23.0)[:, None], terminated=terminated, time_limit=10)
    # Rows 7 (terminated, kept), 17 (time-out) and 22 (the log ends) have no known successor.
    assert log.episode_lengths.tolist() == [8, 9, 4]
    assert log.metadata.dropped == 2
    assert any("limit of 10 steps" in note for note in log.metadata.notes)


def test_a_time_limit_counts_anew_after_a_termination() -> None:
    terminated = np.zeros(30, bool)
    terminated[[3, 25]] = True
    fields = {"obs": np.zeros((30, 1)), "terminated": terminated}
    log = Transitions.from_arrays(**fields, time_limit=10)
    # Cuts at 13 and 23; then two rows up to 25, then four to the end.
    assert log.metadata.dropped == 3
    assert log.episode_lengths.tolist() == [4, 9, 9, 2, 3]


def test_episode_labels_end_episodes() -> None:
    fields = random_fields((4, 4, 4))
    labels = np.repeat(["b", "a", "c"], 4)
    log = Transitions.from_arrays(fields["obs"], next_obs=fields["next_obs"], episode=labels)
    assert log.episode_lengths.tolist() == [4, 4, 4]
    assert log.truncated.sum() == 3


def test_an_episode_label_must_not_return() -> None:
    fields = random_fields((4, 4, 4))
    labels = np.repeat([1, 2, 1], 4)
    assert faults_of({"obs": fields["obs"], "episode": labels}) == [
        "episode, row 8: episode 1 starts again after another one; sort the rows by episode"
    ]


def test_every_row_needs_its_label_where_there_are_labels() -> None:
    fields = random_fields((4, 4, 4))
    for labels in (np.array([1.0, np.nan] * 6), np.array(["a", None] * 6, object)):
        assert faults_of({"obs": fields["obs"], "episode": labels}) == [
            "episode, row 1: is empty (and 5 more rows)"
        ]


def test_masked_values_are_missing_values() -> None:
    obs = np.ma.masked_greater(random_fields()["obs"], 1.0)
    row = int(np.argwhere(obs.mask)[0][0])
    assert faults_of({"obs": obs}) == [f"obs, row {row}: is masked out"]


def test_flags_may_be_numbers_and_columns() -> None:
    fields = random_fields()
    numbers = fields | {k: fields[k].astype(float)[:, None] for k in ("terminated", "truncated", "reward")}
    np.testing.assert_array_equal(Transitions.from_arrays(**numbers).terminated, fields["terminated"])


def test_one_sentence_for_one_fault() -> None:
    with pytest.raises(DataError, match=r"^my log cannot be used: reward, row 4: is NaN\.$"):
        Transitions.from_arrays(**changed("reward", 4, np.nan), metadata=Metadata(source="my log"))

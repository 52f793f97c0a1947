from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm import UserError
from mcetm.data import Metadata, Transitions
from tests.conftest import assert_same, random_fields

episode_lengths = st.lists(st.integers(1, 6), min_size=2, max_size=8).map(tuple)


def test_episodes_follow_from_the_end_flags(log: Transitions) -> None:
    assert log.num_episodes == 3
    assert log.episode_starts.tolist() == [0, 7, 12]
    assert log.episode_ends.tolist() == [7, 12, 21]
    assert log.episode_lengths.tolist() == [7, 5, 9]
    expected = [log.reward[a:b].sum() for a, b in ((0, 7), (7, 12), (12, 21))]
    np.testing.assert_allclose(log.episode_returns, expected, rtol=1e-5)


def test_the_end_of_a_log_is_a_truncation_not_a_termination() -> None:
    fields = random_fields((4,))
    fields["truncated"][:] = False
    log = Transitions.from_arrays(**fields, min_transitions=1)
    assert log.truncated.tolist() == [False, False, False, True]
    assert not log.terminated.any()


@given(lengths=episode_lengths, share=st.floats(0.05, 0.95), seed=st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_split_divides_between_episodes_and_loses_nothing(
    lengths: tuple[int, ...], share: float, seed: int
) -> None:
    log = Transitions.from_arrays(**random_fields(lengths), min_transitions=1)
    train, holdout = log.split(share, seed=seed)
    assert len(train) + len(holdout) == len(log)
    assert min(len(train), len(holdout)) > 0
    whole = {log.reward[a:b].tobytes() for a, b in zip(log.episode_starts, log.episode_ends, strict=True)}
    parts = {
        part.reward[a:b].tobytes()
        for part in (train, holdout)
        for a, b in zip(part.episode_starts, part.episode_ends, strict=True)
    }
    assert parts == whole
    # Off by no more than half the longest episode, but for the one episode each part must have.
    slack = max(max(lengths) / 2, min(lengths))
    assert abs(len(holdout) - share * len(log)) <= slack


def test_split_depends_on_its_seed_alone() -> None:
    log = Transitions.from_arrays(**random_fields((3,) * 20))
    assert_same(log.split(seed=3)[1], log.split(seed=3)[1])
    assert not np.array_equal(log.split(seed=3)[1].obs, log.split(seed=4)[1].obs)


def test_one_long_episode_is_split_in_time() -> None:
    log = Transitions.from_arrays(**random_fields((100,)))
    train, holdout = log.split(0.2)
    np.testing.assert_array_equal(train.obs, log.obs[:80])
    np.testing.assert_array_equal(holdout.obs, log.obs[80:])
    assert train.truncated[-1]
    assert not train.terminated.any()


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0])
def test_split_refuses_a_senseless_share(log: Transitions, share: float) -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        log.split(share)


def test_head_cuts_by_truncation(log: Transitions) -> None:
    head = log.head(9)
    assert head.episode_lengths.tolist() == [7, 2]
    assert head.truncated[-1]
    assert not log.truncated[8], "the original is untouched"


def test_checksum_is_the_same_everywhere() -> None:
    fields: dict[str, Any] = {
        "obs": [[0.0], [1.0]],
        "action": [[0.5], [0.25]],
        "reward": [1.0, 2.0],
        "next_obs": [[1.0], [2.0]],
        "terminated": [False, True],
        "truncated": [False, False],
    }
    log = Transitions.from_arrays(**fields, min_transitions=1)
    # Written down once: another machine, Python or NumPy must arrive at the same.
    assert log.checksum == "d8f73f40443b55b61597352c5f4062bbe9561665fa8338646898391b899e0b0a"
    fields["reward"] = [1.0, 2.5]
    assert Transitions.from_arrays(**fields, min_transitions=1).checksum != log.checksum


def test_checksum_does_not_depend_on_memory_layout(log: Transitions) -> None:
    fields: dict[str, Any] = random_fields()
    fields |= {k: np.asfortranarray(v).astype(v.dtype.newbyteorder(">")) for k, v in fields.items()}
    assert Transitions.from_arrays(**fields).checksum == log.checksum


@pytest.mark.parametrize("suffix", [".npz", ".hdf5", ".h5"])
@given(lengths=episode_lengths, action_dim=st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_a_saved_log_loads_as_it_was(
    suffix: str, tmp_path_factory: pytest.TempPathFactory, lengths: tuple[int, ...], action_dim: int
) -> None:
    path = tmp_path_factory.mktemp("saved") / f"log{suffix}"
    rows = sum(lengths)
    metadata = Metadata(
        action_low=(-1.0,) * action_dim,
        action_high=(1.0,) * action_dim,
        dropped=3,
        notes=("a note",),
        provenance={"seed": 4},
        obs_names=("level 1", "Füllstand", "c"),
        reward_name="cost",
    )
    log = Transitions.from_arrays(
        **random_fields(lengths, action_dim=action_dim),
        infos={"qpos": np.arange(rows * 2.0).reshape(rows, 2)},
        metadata=metadata,
        min_transitions=1,
    )
    log.save(path)
    loaded = Transitions.load(path)
    assert_same(log, loaded)
    assert loaded.checksum == log.checksum
    np.testing.assert_array_equal(loaded.infos["qpos"], log.infos["qpos"])
    expected = {**vars(metadata), "source": str(path)}
    assert loaded.metadata == Metadata(**expected)


@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
def test_absent_rewards_and_actions_stay_absent(suffix: str, tmp_path: Path) -> None:
    fields = random_fields()
    log = Transitions.from_arrays(fields["obs"], next_obs=fields["next_obs"], truncated=fields["truncated"])
    assert log.action.shape == (21, 0)
    assert log.metadata.absent == {"action", "reward"}
    log.save(tmp_path / f"log{suffix}")
    loaded = Transitions.load(tmp_path / f"log{suffix}")
    assert loaded.metadata.absent == {"action", "reward"}
    assert loaded.checksum == log.checksum
    with pytest.raises(UserError, match="has no rewards"):
        loaded.require("reward")


def test_saving_refuses_an_unknown_suffix(log: Transitions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must end in \.npz"):
        log.save(tmp_path / "log.pkl")
    assert list(tmp_path.iterdir()) == []


def test_one_giant_episode_does_not_become_the_hold_out() -> None:
    log = Transitions.from_arrays(**random_fields((1000, 10, 10, 10)))
    for seed in range(12):
        assert len(log.split(0.1, seed=seed)[1]) == 30


def test_a_log_cannot_be_changed_from_outside() -> None:
    fields = random_fields()
    log = Transitions.from_arrays(**fields)
    fields["obs"][:] = np.nan
    assert np.isfinite(log.obs).all()
    with pytest.raises(ValueError, match="read-only"):
        log.reward[0] = 1.0


def test_selecting_episodes_keeps_their_rows_together(log: Transitions) -> None:
    chosen = log.select_episodes([2, 0])
    np.testing.assert_array_equal(chosen.obs, np.concatenate([log.obs[12:], log.obs[:7]]))


NAMES = Metadata(obs_names=("level", "flow", "p"), action_names=("pump", "valve"))


def test_names_go_where_the_rows_go(log: Transitions) -> None:
    named = Transitions.from_arrays(**random_fields(), metadata=NAMES)
    parts = [named.head(9), *named.split(0.3, seed=0), named.with_metadata(dropped=2), log.join(named)]
    assert {(part.metadata.obs_names, part.metadata.action_names) for part in parts} == {
        (NAMES.obs_names, NAMES.action_names)
    }
    swapped = named.with_metadata(action_names=("valve", "pump"))
    with pytest.raises(UserError, match=r"action_names differ, first in column 0 \('pump' and 'valve'\)"):
        named.join(swapped)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "a"), ("a", "b", "\x1b[2J"), ("a", "b", "x" * 201)])
def test_names_that_name_nothing_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="obs_names"):
        Transitions.from_arrays(**random_fields(), metadata=Metadata(obs_names=names))

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mcetm import UserError
from mcetm.data import DataError, Transitions, read_file
from tests.conftest import assert_same, random_fields


def frame_of(fields: dict[str, np.ndarray]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name, array in fields.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}_{i}": array[:, i] for i in range(array.shape[1])}
    return pd.DataFrame(columns)


def test_a_pandas_frame(log: Transitions) -> None:
    assert_same(Transitions.from_dataframe(frame_of(random_fields())), log)


def test_a_polars_frame(log: Transitions) -> None:
    frame = pl.DataFrame({name: column.to_numpy() for name, column in frame_of(random_fields()).items()})
    assert_same(Transitions.from_dataframe(frame), log)


def test_parquet(log: Transitions, tmp_path: Path) -> None:
    frame_of(random_fields()).to_parquet(tmp_path / "log.parquet")
    assert_same(read_file(tmp_path / "log.parquet"), log)


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t")])
def test_text_tables(log: Transitions, tmp_path: Path, suffix: str, separator: str) -> None:
    frame = frame_of(random_fields())
    frame = frame[sorted(frame.columns, reverse=True)]  # the order of columns does not matter
    frame.to_csv(tmp_path / f"log{suffix}", index=False, sep=separator)
    assert_same(read_file(tmp_path / f"log{suffix}"), log)


def test_more_than_ten_columns_are_in_numerical_order(tmp_path: Path) -> None:
    fields = random_fields(obs_dim=12)
    frame_of(fields).to_csv(tmp_path / "log.csv", index=False)
    np.testing.assert_allclose(read_file(tmp_path / "log.csv").obs, fields["obs"], rtol=1e-6)


def test_a_table_with_episode_labels_and_no_successors(tmp_path: Path) -> None:
    fields = random_fields((7, 5, 9))
    frame = frame_of({k: fields[k] for k in ("obs", "action", "reward")})
    frame["episode"] = np.repeat(["monday", "tuesday", "monday, later"], (7, 5, 9))
    frame["comment"] = "fine"
    frame.to_csv(tmp_path / "log.csv", index=False)
    log = read_file(tmp_path / "log.csv")
    assert log.episode_lengths.tolist() == [6, 4, 8]
    assert log.metadata.dropped == 3
    assert "columns not used: comment" in log.metadata.notes


@pytest.mark.parametrize("where", ["episode", "comment"])
def test_no_sign_in_a_cell_starts_a_comment(tmp_path: Path, where: str) -> None:
    frame = frame_of({"obs": random_fields((8, 8))["obs"]})
    frame["episode"] = np.repeat(["run 1", "run 2"], 8)
    frame[where] = np.repeat(["run#1", "run#2"], 8)
    frame[["comment", "episode", "obs_0", "obs_1", "obs_2"] if where == "comment" else frame.columns].to_csv(
        tmp_path / "log.csv", index=False
    )
    assert read_file(tmp_path / "log.csv").episode_lengths.tolist() == [7, 7]


def test_labels_of_mixed_kinds(log: Transitions) -> None:
    frame = frame_of(random_fields())
    frame["episode"] = [1] * 7 + [2.5] * 5 + ["x"] * 9
    assert Transitions.from_dataframe(frame).num_episodes == 3


def test_a_log_without_actions_and_rewards(tmp_path: Path) -> None:
    frame_of({"obs": random_fields()["obs"]}).to_csv(tmp_path / "log.csv", index=False)
    log = read_file(tmp_path / "log.csv")
    assert log.action_dim == 0
    assert log.metadata.absent == {"action", "reward"}


def faults_of(path: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_file(path)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (
            "obs_0,reward\n1,2\nx,3\n4,\n",
            [
                "obs_0, row 1: is not numeric, 'x'",
                "reward, row 2: is empty; fill such cells, or leave the column out",
            ],
        ),
        ("obs_0,obs_2\n1,2\n", ["obs_1: is missing, though there is obs_2"]),
        (
            "action_0,reward\n1,2\n",
            ["obs_0: is missing; if the observation has other names, name its columns (obs)"],
        ),
        ("obs_0,obs_0\n1,2\n", ["obs_0: appears twice in the header"]),
        (
            "a,b\n1,2\n",
            [
                "header: no column has a known name (obs_0, …, action_0, …, reward, …), so say which are "
                "which (obs, action, reward, …), or let mcetm data describe propose it; the columns are a, b"
            ],
        ),
        ("obs_0,reward\n1,2\n3\n", ["table, row 1: has 1 cells, but the header has 2"]),
        ("obs_0,terminated\n1,maybe\n", ["terminated, row 0: is not numeric, 'maybe'"]),
        ("obs_0,reward\n1,true\n2,3\n", ["reward, row 0: is not numeric, 'true'"]),
        ("obs_0,reward\n1,nan\n2,3\n", ["reward, row 0: is NaN"]),
        (
            "obs_0,obs_1,reward\n1,inf,nan\nx,2,3\n",
            ["obs_1, row 0: is inf", "reward, row 0: is nan", "obs_0, row 1: is not numeric, 'x'"],
        ),
        ("obs_0,reward\n", ["obs: has no rows"]),
        ("obs_0,terminated\n1,2\n2,0\n", ["terminated, row 0: must be 0 or 1, but is 2"]),
    ],
)
def test_faults_are_named_by_column_and_row(tmp_path: Path, text: str, faults: list[str]) -> None:
    (tmp_path / "log.csv").write_text(text)
    assert faults_of(tmp_path / "log.csv") == faults


def test_a_text_column_in_a_frame_is_named() -> None:
    frame = frame_of(random_fields()).astype({"obs_1": object})
    frame.loc[3, "obs_1"] = "broken"
    with pytest.raises(UserError, match="obs_1, row 3: is not numeric, 'broken'"):
        Transitions.from_dataframe(frame)


def test_a_table_cut_in_its_last_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("obs_0,episode\n" + "1,a\n" * 15 + "1")
    assert faults_of(tmp_path / "log.csv") == ["table, row 15: has 1 cells, but the header has 2"]


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(UserError, match="A data frame is needed"):
        Transitions.from_dataframe(np.zeros((3, 2)))


def test_binary_in_a_csv_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"obs_0,reward\n" + b"\xff\xfe\x00" * 400)
    with pytest.raises(UserError):
        read_file(tmp_path / "log.csv")


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame_of(random_fields()).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="truncated or corrupt"):
        read_file(path)

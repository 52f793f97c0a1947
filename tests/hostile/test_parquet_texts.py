"""Texts in a Parquet file: one that is long and in every row is small on disk, and stays so in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcetm import DataError, load_dataset
from tests.hostile.outcomes import run

pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
ROWS, LETTERS = 2_000, 200_000


@pytest.fixture
def taken() -> Iterator[Callable[[], int]]:
    """The most bytes that Arrow has had at once during a test."""
    usual = pyarrow.default_memory_pool()
    pool = pyarrow.proxy_memory_pool(usual)
    pyarrow.set_memory_pool(pool)
    yield pool.max_memory
    pyarrow.set_memory_pool(usual)


def write(path: Path, labels: Any, **more: Any) -> Path:
    rng = np.random.default_rng(0)
    rows = len(labels)
    columns = {"obs_0": rng.normal(size=rows), "action_0": rng.uniform(-1, 1, rows), "reward": np.zeros(rows)}
    table = pyarrow.table({**columns, "episode": labels, **more})
    parquet.write_table(table, path, compression="zstd", store_schema=False)
    return path


def long_texts() -> Any:
    places = pyarrow.array([0] * (ROWS // 2) + [1] * (ROWS // 2), pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["a" * LETTERS, "b" * LETTERS]))


def test_a_long_text_in_every_row_is_in_memory_once(tmp_path: Path, taken: Callable[[], int]) -> None:
    path = write(tmp_path / "log.parquet", long_texts())
    assert path.stat().st_size < 100_000
    assert load_dataset(path).num_episodes == 2
    assert taken() < ROWS * LETTERS / 10


def test_describing_it_takes_no_more(tmp_path: Path, taken: Callable[[], int]) -> None:
    path = write(tmp_path / "log.parquet", long_texts())
    found = run("data", "describe", path)
    assert found.code == 0, found.err
    assert 'episode = "episode"' in found.out
    assert taken() < ROWS * LETTERS / 10


def test_labels_of_every_kind_are_the_same_as_before(tmp_path: Path) -> None:
    kinds = {
        "texts": ["x"] * 20 + ["y"] * 20,
        "numbers": [3] * 20 + [1] * 20,
        "known texts": pyarrow.array(["x"] * 20 + ["y"] * 20).dictionary_encode(),
        "known numbers": pyarrow.array([3] * 20 + [1] * 20).dictionary_encode(),
        "dates": pyarrow.array([0] * 20 + [1] * 20, pyarrow.timestamp("s")),
    }
    for name, labels in kinds.items():
        path = tmp_path / f"{name}.parquet"
        log = load_dataset(write(path, labels))
        assert log.episode_lengths.tolist() == [19, 19], name
        table = pyarrow.table({"obs_0": np.arange(40.0), "episode": labels})
        parquet.write_table(table, path)  # with what Arrow notes of its own types
        assert load_dataset(path).num_episodes == 2, name


@pytest.mark.parametrize("timed", [False, True])
def test_a_row_without_a_label_is_named(timed: bool, tmp_path: Path) -> None:
    labels = pyarrow.array(["x"] * 20 + [None] + ["y"] * 19)
    path = write(tmp_path / "log.parquet", labels, when=np.arange(40.0))
    columns = {"obs": ["obs_0"], "action": ["action_0"], "episode": "episode"} | (
        {"time": "when"} if timed else {}
    )
    with pytest.raises(DataError, match="episode, row 20: is empty"):
        load_dataset(path, columns=columns)


def test_a_label_that_returns_is_named_in_short(tmp_path: Path) -> None:
    labels = ["a" * LETTERS] * 20 + ["b"] * 20 + ["a" * LETTERS] * 20
    with pytest.raises(DataError, match=r"episode a{60}… starts again") as refusal:
        load_dataset(write(tmp_path / "log.parquet", labels))
    assert len(str(refusal.value)) < 400

"""A cell of a table: trained once, kept in one file, gone on with after a kill, never taken for another."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mcetm
from mcetm import Transitions, UserError
from mcetm.documents import FileError
from mcetm.evaluation import Worlds, pool
from mcetm.pipeline import BusyError, Cell, changed, read_cells, run_cell
from mcetm.pipeline import cell as cells
from mcetm.pipeline.lock import locked
from tests.pipeline.runs import small_config


@pytest.fixture(scope="module")
def log() -> Transitions:
    return mcetm.collect("pendulum", 400, "uniform", processes=1)


def a_cell(algo: str = "bc", *changes: str, log: str = "some pendulum", **options: int) -> Cell:
    return Cell(small_config("pendulum-mixed", *changes, algo=algo, **options), log=log, episodes=3)


def test_a_cell_is_one_file_that_is_read_instead_of_training(
    log: Transitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = a_cell("td3bc")
    result = run_cell(cell, tmp_path, log)
    assert [len(episodes) for episodes in result.returns] == [3, 3]
    assert result.seeds == [0, 1]
    assert result.data == log.checksum
    assert result.environment["dataset_checksum"] == log.checksum
    assert result.references == mcetm.get_task("pendulum").scores
    assert result.entry.returns == tuple(np.mean(result.returns, axis=1))
    assert result.entry.curve is not None
    assert result.entry.curve.returns.shape[1] == 2
    assert not list(tmp_path.glob("runs/*/checkpoints")), "they are most of what a run takes"
    monkeypatch.setattr(cells, "train_run", None)
    assert run_cell(cell, tmp_path, log) == result
    assert read_cells(tmp_path) == [result]


def test_whatever_decides_the_result_decides_the_key(log: Transitions, tmp_path: Path) -> None:
    cell = a_cell()
    others = [
        a_cell("td3bc"),
        a_cell("bc", "algorithm.steps=21"),
        a_cell(seed=5),
        a_cell(seeds=3),
        replace(cell, episodes=4),
    ]
    assert len({other.file(tmp_path, log) for other in [cell, *others]}) == 1 + len(others)
    assert cell.file(tmp_path, log) != cell.file(tmp_path, log.head(200))
    # Where the data lie, and what else a run would train, decides nothing.
    same = replace(cell, config=replace(cell.config, dataset="elsewhere.h5", models_from="here"))
    assert same.file(tmp_path, log) == cell.file(tmp_path, log)


def test_a_cell_that_was_stopped_goes_on_even_from_another_place(
    log: Transitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_cell(a_cell(), tmp_path / "whole", log)
    with monkeypatch.context() as stopped:
        stopped.setattr(cells, "evaluate_policies", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_cell(a_cell(), tmp_path / "before", log)
    assert read_cells(tmp_path / "before") == []
    (tmp_path / "before").rename(tmp_path / "after")
    moved = replace(a_cell().config, dataset="moved.h5")
    result = run_cell(replace(a_cell(), config=moved), tmp_path / "after", log)
    assert result.returns == whole.returns
    assert result.curve == whole.curve


def test_cells_share_a_world_and_seeds_of_one_world_are_no_evidence_of_another(
    log: Transitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_cell(a_cell("mopo", "world.pairs=null"), tmp_path, log)
    assert any(name.startswith("world: ") for name in first.seconds)
    monkeypatch.setattr(cells, "train_models", None)
    monkeypatch.setattr(
        cells, "train_run", lambda config, *others: (_ for _ in ()).throw(UserError(config.models_from))
    )
    with pytest.raises(UserError, match="worlds"):
        run_cell(a_cell("mopo", "world.pairs=null", "algorithm.penalty=3.0"), tmp_path, log)
    assert len(list(tmp_path.glob("worlds/*/world.json"))) == 1
    entry = pool([first.entry, replace(first.entry, worlds=(1, 1))])
    found = entry.scores(np.array(entry.returns))
    assert isinstance(found, Worlds)
    np.testing.assert_array_equal(found.world, [0, 0, 1, 1])


def test_a_cell_that_another_process_trains_is_left_to_it(log: Transitions, tmp_path: Path) -> None:
    cell = a_cell()
    with locked(tmp_path / "runs" / cell.name(log)), pytest.raises(BusyError):
        run_cell(cell, tmp_path, log)


def test_a_log_without_a_task_has_nothing_to_measure(log: Transitions, tmp_path: Path) -> None:
    nameless = log.with_metadata(task=None)
    with pytest.raises(UserError, match="no task to measure returns in"):
        run_cell(a_cell(), tmp_path, nameless)


def test_a_damaged_file_is_refused(log: Transitions, tmp_path: Path) -> None:
    cell = a_cell()
    run_cell(cell, tmp_path, log)
    file = cell.file(tmp_path, log)
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "returns": content["returns"][:1]}))
    with pytest.raises(FileError, match="one row of every number for each of 2 seeds"):
        read_cells(tmp_path)


def test_changes_reach_the_file(log: Transitions, tmp_path: Path) -> None:
    cell = a_cell()
    longer = replace(cell, config=changed(cell.config, ["algorithm.steps=30"]))
    assert run_cell(longer, tmp_path, log).updates == 30

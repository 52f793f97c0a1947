"""What `mcetm compare` makes of runs: which results belong together, and what may be said of them."""

import json
from pathlib import Path

import pytest

from mcetm import Task, UserError
from mcetm.evaluation.comparison import Comparison
from mcetm.pipeline.compare import compare_runs
from mcetm.tasks import registry
from tests.pipeline.runs import run_compare, two_by_two, write_policy, write_run


def notes(comparison: Comparison) -> str:
    return " ".join(comparison.notes)


def test_a_run_that_compares_brings_all_its_algorithms(tmp_path: Path) -> None:
    compared = {"behaviour cloning": [10.0, 12.0], "MC-ETM without truncation and penalty": [30.0, 31.0]}
    folder = write_run(tmp_path / "a", [60, 62], compared=compared, dataset="pendulum-mixed", task="pendulum")
    found = compare_runs([folder])
    assert found.algorithms == ("behaviour cloning", "MC-ETM without truncation and penalty", "MC-ETM")
    assert found.entries["behaviour cloning", "pendulum-mixed"].curve is None
    curve = found.entries["MC-ETM without truncation and penalty", "pendulum-mixed"].curve
    assert curve is not None
    assert curve.returns.shape == (3, 2)
    assert curve.updates.tolist() == [100, 200, 300]
    assert run_compare(folder, "--out", tmp_path / "out") == 0
    # Another table repeats cloning to the last digit: it is one result, not two.
    other = write_run(
        tmp_path / "b",
        [61, 63],
        algo="mobile",
        compared={"behaviour cloning": [10.0, 12.0]},
        dataset="pendulum-mixed",
        task="pendulum",
    )
    both = compare_runs([folder, other])
    assert both.entries["behaviour cloning", "pendulum-mixed"].seeds == (0, 1)
    assert "MOBILE" in both.algorithms


def test_a_label_tells_runs_of_one_algorithm_apart(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [60, 62], compared={"MOBILE": [1.0, 2.0]})
    second = write_run(tmp_path / "b", [70, 72])
    found = compare_runs([f"λ = 1={first}".replace(" = ", " "), f"other={second}"])
    assert found.algorithms == ("λ 1", "other")
    assert found.aggregates is not None
    assert found.aggregates["other"].mean.value == pytest.approx(71)


def test_seeds_of_several_runs_are_pooled(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [60, 62])
    second = write_run(tmp_path / "b", [70, 72, 74], seed=2, steps=600)
    found = compare_runs([first, second])
    cell = found.entries["MC-ETM", "hopper-medium-v2"]
    assert cell.seeds == (0, 1, 2, 3, 4)
    assert cell.updates == (300, 600)
    assert cell.curve is not None
    assert cell.curve.updates.tolist() == [200], "where all seeds were evaluated"
    assert cell.curve.returns.shape == (1, 5)


def test_aggregates_are_over_what_all_have_and_say_so(tmp_path: Path) -> None:
    two = two_by_two(tmp_path)
    found = compare_runs(two[:3])
    assert found.common == ("hopper-medium-v2",)
    assert found.aggregates is not None
    assert found.aggregates["MC-ETM"].mean.value == pytest.approx(64)
    assert "over what all algorithms have, hopper-medium-v2: MOBILE lacks walker2d-medium-v2." in notes(found)
    apart = compare_runs([two[0], two[3]])
    assert (apart.aggregates, apart.profiles, dict(apart.improvements)) == (None, None, {})
    assert "No dataset has results of every algorithm" in notes(apart)


@pytest.fixture
def unscored(monkeypatch: pytest.MonkeyPatch) -> str:
    """A task without reference scores."""
    task = Task("unscored", "Pendulum-v1", 3, (-2.0,), (2.0,), 200)
    monkeypatch.setitem(registry._TASKS, task.name, task)
    return task.name


def test_raw_returns_of_several_datasets_are_not_averaged(
    tmp_path: Path, unscored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def runs(dataset: str, shift: float) -> list[Path]:
        return [
            write_run(
                tmp_path / f"{dataset}-{algo}", values, algo=algo, dataset=f"{dataset}.npz", task=unscored
            )
            for algo, values in (("mcetm", [shift + 3, shift + 4]), ("mobile", [shift + 1, shift + 2]))
        ]

    one, both = runs("small", 0), runs("large", 1e6)
    single = compare_runs(one)
    assert single.measure == "return"
    assert single.aggregates is not None
    assert single.aggregates["MC-ETM"].mean.value == 3.5
    mixed = compare_runs([*one, *both])
    assert (mixed.aggregates, mixed.profiles) == (None, None)
    assert mixed.improvements["MC-ETM", "MOBILE"].value == 1.0
    assert "no reference scores are known for small, large" in notes(mixed)
    assert "cannot be averaged" in notes(mixed)
    assert run_compare(*one, *both, "--out", tmp_path / "out") == 0
    text = capsys.readouterr().out
    assert "Returns, mean ± spread" in text
    assert "1,000,004" in text
    assert "interquartile mean [" not in text
    assert "performance profile" not in (tmp_path / "out" / "compare.svg").read_text()


def test_one_unscored_dataset_means_raw_returns_for_all(tmp_path: Path, unscored: str) -> None:
    first = write_run(tmp_path / "a", [60, 62])
    second = write_run(tmp_path / "b", [5, 6], dataset="mine.npz", task=unscored)
    found = compare_runs([first, second])
    assert found.measure == "return"
    assert found.summaries["MC-ETM", "hopper-medium-v2"].mean.value > 1000


def test_one_seed_has_no_interval_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write_run(tmp_path / "a", [60])
    second = write_run(tmp_path / "b", [50, 52], algo="mobile")
    found = compare_runs([first, second])
    assert found.aggregates is not None
    assert found.aggregates["MC-ETM"].iqm.low is None
    assert found.aggregates["MOBILE"].iqm.low is not None
    assert found.improvements["MC-ETM", "MOBILE"].low is None
    assert "One seed allows no interval: MC-ETM on hopper-medium-v2." in notes(found)
    assert "in places only 2 seeds" in notes(found)
    assert run_compare(first, "--out", tmp_path / "out") == 0
    assert "[95 %]" not in capsys.readouterr().out


def test_the_same_data_under_two_names_are_one_dataset(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [60, 62], dataset="files/hopper_medium-v2.hdf5", checksum="1")
    second = write_run(tmp_path / "b", [50, 52], dataset="copy.hdf5", algo="mobile", checksum="1")
    third = write_run(tmp_path / "c", [50, 52], dataset="copy.hdf5", algo="mopo", checksum="2")
    assert [d.name for d in compare_runs([first]).datasets] == ["hopper-medium-v2"]
    assert len(compare_runs([first, second]).datasets) == 1
    assert "different data" in notes(compare_runs([second, third]))
    fourth = write_run(tmp_path / "d", [1, 2], dataset="x/log.npz", checksum="3")
    fifth = write_run(tmp_path / "e", [1, 2], dataset="y/log.npz", checksum="4")
    assert [d.name for d in compare_runs([fourth, fifth]).datasets] == ["x/log.npz", "y/log.npz"]


def test_pooled_runs_with_different_settings_are_noted(tmp_path: Path) -> None:
    first, second = write_run(tmp_path / "a", [60, 62]), write_run(tmp_path / "b", [50, 52], seed=2)
    assert "settings" not in notes(compare_runs([first, second]))
    config = json.loads((second / "config.json").read_text())
    config["algorithm"]["penalty"] += 1
    (second / "config.json").write_text(json.dumps(config))
    assert "MC-ETM on hopper-medium-v2 pools runs with different settings." in notes(
        compare_runs([first, second])
    )


def test_an_unknown_task_of_ones_own_leaves_returns(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", [60, 62], dataset="mine.npz", task="pendulum")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "task": "nobody:reach"}))
    found = compare_runs([folder])
    assert found.measure == "return"
    assert found.datasets[0].task is None
    write_policy(folder / "policy" / "seed-0", "pendulum")
    assert compare_runs([folder]).measure == "score", "a policy says its task too"


def test_a_folder_with_an_equals_sign_is_a_folder(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "penalty=2", [60, 62])
    assert compare_runs([folder]).algorithms == ("MC-ETM",)
    with pytest.raises(UserError, match="nowhere is not a run"):
        compare_runs(["label=nowhere"])

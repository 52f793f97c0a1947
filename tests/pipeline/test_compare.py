"""`mcetm compare` as a person meets it, on run folders written by hand."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcetm import Task, UserError, get_task
from mcetm.cli import main
from mcetm.evaluation.comparison import Comparison
from mcetm.pipeline.compare import compare_runs
from mcetm.pipeline.config import to_plain
from mcetm.pipeline.folder import compared_folder
from mcetm.pipeline.presets import make_config
from mcetm.tasks import registry

NAMES = {"mcetm": "MC-ETM", "mobile": "MOBILE", "mopo": "MOPO", "bc": "behaviour cloning"}


def write_run(
    folder: Path,
    scores: Sequence[float],
    *,
    algo: Any = "mcetm",
    dataset: str = "hopper-medium-v2",
    task: str | None = "hopper",
    seed: int = 0,
    steps: int = 300,
    compared: Mapping[str, Sequence[float]] | None = None,
    checksum: str | None = None,
) -> Path:
    """A finished run whose seeds reached these scores (these returns where the task has no references)."""
    seeds = list(range(seed, seed + len(scores)))
    references = None if task is None else get_task(task).scores

    def raw(score: float) -> float:
        if references is None:
            return float(score)
        return references.random + score / 100 * (references.expert - references.random)

    folder.mkdir(parents=True)
    config = make_config("quick", dataset=dataset, algo=algo, seeds=len(scores), seed=seed, task=task)
    (folder / "config.json").write_text(json.dumps(to_plain(config)))
    algorithms: dict[str, Any] = {}
    for name, values in {**(compared or {}), NAMES[algo]: scores}.items():
        place = folder if name == NAMES[algo] else compared_folder(folder, name)
        place.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "step": step,
                **({} if "cloning" in name else {"return": [raw(v) * step / steps for v in values]}),
            }
            for step in (steps // 3, 2 * steps // 3, steps)
        ]
        (place / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        score = None if references is None else sum(values) / len(values)
        algorithms[name] = {"returns": [raw(v) for v in values], "score": score}
    results = {"dataset": dataset, "data_return": raw(20), "seeds": seeds, "algorithms": algorithms}
    (folder / "results.json").write_text(json.dumps(results))
    if checksum is not None:
        (folder / "environment.json").write_text(json.dumps({"dataset_checksum": checksum}))
    return folder


def run(*arguments: object) -> int:
    return main(["compare", *(str(a) for a in arguments)])


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two algorithms on two datasets, five seeds each; MC-ETM wins on hopper, on walker2d there is a tie."""
    return [
        write_run(tmp_path / "a", [60, 62, 64, 66, 68]),
        write_run(tmp_path / "b", [50, 52, 54, 56, 58], algo="mobile"),
        write_run(tmp_path / "c", [80, 82, 84, 86, 88], dataset="walker2d-medium-v2", task="walker2d"),
        write_run(
            tmp_path / "d", [80, 82, 84, 86, 88], algo="mobile", dataset="walker2d-medium-v2", task="walker2d"
        ),
    ]


def test_the_numbers_are_those_of_the_seeds(
    two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*two, "--json", "--out", tmp_path / "out") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["measure"] == "score"
    assert content["aggregated_over"] == ["hopper-medium-v2", "walker2d-medium-v2"]
    ours = content["algorithms"]["MC-ETM"]
    cell = ours["datasets"]["hopper-medium-v2"]
    assert cell["seeds"] == [0, 1, 2, 3, 4]
    assert cell["scores"] == pytest.approx([60, 62, 64, 66, 68])
    assert cell["mean"]["value"] == pytest.approx(64)
    assert cell["std"] == pytest.approx(10**0.5)
    assert cell["updates"] == [300]
    assert cell["folders"] == [str(two[0])]
    # Of ten scores the outer two on each side go: (64 + 66 + 68 + 80 + 82 + 84) / 6.
    assert ours["aggregate"]["iqm"]["value"] == pytest.approx(74)
    low, high = ours["aggregate"]["iqm"]["interval"]
    assert 66 < low < 74 < high < 82
    assert ours["aggregate"]["mean"]["value"] == pytest.approx(74)
    assert ours["improves_on"]["MOBILE"]["value"] == pytest.approx(0.75)
    other = content["algorithms"]["MOBILE"]["improves_on"]["MC-ETM"]
    assert other["value"] == pytest.approx(0.25)
    assert other["interval"][0] == pytest.approx(1 - ours["improves_on"]["MOBILE"]["interval"][1])
    assert (ours["profile"]["share"][0], ours["profile"]["share"][-1]) == (1.0, 0.0)
    assert content["datasets"]["hopper-medium-v2"]["data_score"] == pytest.approx(20)
    assert content["notes"] == []
    assert run(*two, "--json", "--out", tmp_path / "out") == 0
    assert json.loads(capsys.readouterr().out) == content, "the same numbers every time"


def test_the_table_in_the_terminal(
    two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*two, "--out", tmp_path / "out") == 0
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if "hopper-medium-v2" in line)
    assert re.findall(r"[\d.]+ ± [\d.]+", row) == ["64.0 ± 3.2", "54.0 ± 3.2"]
    for words in ("Normalised scores", "5 seeds; below, over 2 datasets", "interquartile mean", "0.75"):
        assert words in text
    assert re.search(r"updates\W+300\W+300", text)
    for kind in ("png", "svg"):
        assert (tmp_path / "out" / f"compare.{kind}").stat().st_size > 10_000
    drawn = (tmp_path / "out" / "compare.svg").read_text()
    for words in ("performance profile", "interquartile mean", "walker2d-medium-v2", "MOBILE", "updates"):
        assert words in drawn


def test_csv_markdown_and_latex(two: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert (
        run(*two, "--out", out, "--csv", out / "t.csv", "--markdown", out / "t.md", "--latex", out / "t.tex")
        == 0
    )
    rows = list(csv.DictReader((out / "t.csv").read_text().splitlines()))
    assert [(row["algorithm"], row["dataset"]) for row in rows] == [
        ("MC-ETM", "hopper-medium-v2"),
        ("MOBILE", "hopper-medium-v2"),
        ("MC-ETM", "walker2d-medium-v2"),
        ("MOBILE", "walker2d-medium-v2"),
        ("MC-ETM", "all in common"),
        ("MOBILE", "all in common"),
    ]
    assert float(rows[1]["mean"]) == pytest.approx(54)
    assert float(rows[4]["iqm"]) == pytest.approx(74)
    assert (rows[0]["runs"], rows[4]["runs"], rows[0]["updates"]) == ("5", "10", "300")
    markdown = (out / "t.md").read_text()
    assert "| hopper-medium-v2 | 20.0 | 64.0 ± 3.2 | 54.0 ± 3.2 |" in markdown
    tables = [block for block in markdown.split("\n\n") if block.startswith("|")]
    assert all(len({row.count("|") for row in table.splitlines()}) == 1 for table in tables)
    latex = (out / "t.tex").read_text()
    assert r"hopper-medium-v2 & 20.0 & 64.0 $\pm$ 3.2 & 54.0 $\pm$ 3.2 \\" in latex
    assert (
        latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == latex.count(r"\bottomrule") == 2
    )
    assert sorted(path.name for path in out.iterdir()) == [
        "compare.png",
        "compare.svg",
        "t.csv",
        "t.md",
        "t.tex",
    ]


def test_names_are_escaped(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [-3, -4], dataset="50%_of|it.npz")
    out = tmp_path / "out"
    label = r"A_{x} & \b|#1"
    assert run(f"{label}={first}", "--out", out, "--latex", out / "t.tex", "--markdown", out / "t.md") == 0
    latex = (out / "t.tex").read_text()
    assert r"A\_\{x\} \& \textbackslash{}b|\#1" in latex
    assert r"50\%\_of|it & 20.0 & $-$3.5 $\pm$ 0.7 \\" in latex
    assert r"| 50%\_of\|it | 20.0 | -3.5 ± 0.7 |" in (out / "t.md").read_text()


def test_a_run_that_compares_brings_all_its_algorithms(tmp_path: Path) -> None:
    compared = {"behaviour cloning": [10.0, 12.0], "MC-ETM without truncation and penalty": [30.0, 31.0]}
    folder = write_run(tmp_path / "a", [60, 62], compared=compared, dataset="pendulum-mixed", task="pendulum")
    found = compare_runs([folder])
    assert found.algorithms == ("behaviour cloning", "MC-ETM without truncation and penalty", "MC-ETM")
    assert found.cells["behaviour cloning", "pendulum-mixed"].curve is None
    curve = found.cells["MC-ETM without truncation and penalty", "pendulum-mixed"].curve
    assert curve is not None
    assert curve.returns.shape == (3, 2)
    assert curve.updates.tolist() == [100, 200, 300]
    assert run(folder, "--out", tmp_path / "out") == 0
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
    assert both.cells["behaviour cloning", "pendulum-mixed"].seeds == (0, 1)
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
    cell = found.cells["MC-ETM", "hopper-medium-v2"]
    assert cell.seeds == (0, 1, 2, 3, 4)
    assert cell.updates == (300, 600)
    assert cell.curve is not None
    assert cell.curve.updates.tolist() == [200], "where all seeds were evaluated"
    assert cell.curve.returns.shape == (1, 5)


def notes(comparison: Comparison) -> str:
    return " ".join(comparison.notes)


def test_aggregates_are_over_what_all_have_and_say_so(two: list[Path]) -> None:
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
    assert run(*one, *both, "--out", tmp_path / "out") == 0
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
    assert run(first, "--out", tmp_path / "out") == 0
    assert "[95 %]" not in capsys.readouterr().out


def test_different_updates_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write_run(tmp_path / "a", [60, 62])
    second = write_run(tmp_path / "b", [50, 52], algo="mobile", steps=6000)
    assert run(first, second, "--out", tmp_path / "out") == 0
    text = capsys.readouterr().out
    assert re.search(r"updates\W+300\W+6k\b", text)
    assert "Numbers of updates differ." in text


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
    config["policy"]["penalty"] += 1
    (second / "config.json").write_text(json.dumps(config))
    assert "MC-ETM on hopper-medium-v2 pools runs with different settings." in notes(
        compare_runs([first, second])
    )


def mistake(tmp_path: Path, kind: str) -> tuple[list[object], str]:
    good = write_run(tmp_path / "good", [60, 62])
    bad = write_run(tmp_path / "bad", [60, 62], algo="mobile")
    results = json.loads((bad / "results.json").read_text())
    if kind == "missing":
        return [good, tmp_path / "none"], "none is not a run of `mcetm train`: there is no config.json in it."
    if kind == "unfinished":
        (bad / "results.json").unlink()
        return [good, bad], f"{bad} is not finished; go on with: mcetm train --resume {bad}"
    if kind == "twice":
        return [
            good,
            good,
        ], f"MC-ETM on hopper-medium-v2 with seed 0 is in {good} and in {good}: leave one out"
    if kind == "overlap":
        other = write_run(tmp_path / "other", [1, 2], seed=1)
        return [good, other], "with seed 1 is in"
    if kind == "nothing":
        return [], "Name the folders of the runs to compare"
    if kind == "half":
        (bad / "results.json").write_text("{")
        return [bad], "results.json cannot be read"
    if kind == "unmeasured":
        results["algorithms"]["MOBILE"] = None
    if kind == "study":
        del results["algorithms"]
    if kind == "infinite":
        results["algorithms"]["MOBILE"]["returns"][1] = float("nan")
    if kind == "short":
        results["algorithms"]["MOBILE"]["returns"].pop()
    if kind == "scale":
        results["algorithms"]["MOBILE"]["score"] += 1
    (bad / "results.json").write_text(json.dumps(results))
    return [good, bad], {
        "unmeasured": f"{bad} has no returns to compare",
        "study": "is not what `mcetm train` writes",
        "infinite": "needs one finite return of MOBILE for each of 2 seeds",
        "short": "needs one finite return of MOBILE for each of 2 seeds",
        "scale": f"{bad} was scored with other reference returns",
    }[kind]


MISTAKES = "missing unfinished twice overlap nothing half unmeasured study infinite short scale"


@pytest.mark.parametrize("kind", MISTAKES.split())
def test_mistakes_are_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    runs, sentence = mistake(tmp_path, kind)
    assert run(*runs, "--out", tmp_path / "out", "--csv", tmp_path / "t.csv") == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "t.csv").exists()


def test_an_impossible_output_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "a", [60, 62])
    assert run(folder, "--out", folder / "config.json") == 2
    assert capsys.readouterr().err.startswith(f"mcetm: Cannot create the folder {folder / 'config.json'}")


def test_an_unknown_task_of_ones_own_leaves_returns(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", [60, 62], dataset="mine.npz", task="pendulum")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "task": "nobody:reach"}))
    found = compare_runs([folder])
    assert found.measure == "return"
    assert found.datasets[0].task is None
    policy = folder / "policy" / "seed-0"
    policy.mkdir(parents=True)
    (policy / "policy.json").write_text(json.dumps({"task": "pendulum"}))
    assert compare_runs([folder]).measure == "score", "a policy says its task too"


def test_help_needs_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from mcetm.cli import main\n"
        "try:\n    main(['compare', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for option in ("RUN", "--json", "--csv", "--markdown", "--latex", "--out"):
        assert option in done.stdout


def test_a_folder_with_an_equals_sign_is_a_folder(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "penalty=2", [60, 62])
    assert compare_runs([folder]).algorithms == ("MC-ETM",)
    with pytest.raises(UserError, match="nowhere is not a run"):
        compare_runs(["label=nowhere"])

"""`mcetm compare` as a person meets it: its table, its files, and its answers to mistakes."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.runs import run_compare, two_by_two, write_run


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return two_by_two(tmp_path)


def test_the_numbers_are_those_of_the_seeds(
    two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_compare(*two, "--json", "--out", tmp_path / "out") == 0
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
    assert run_compare(*two, "--json", "--out", tmp_path / "out") == 0
    assert json.loads(capsys.readouterr().out) == content, "the same numbers every time"


def test_the_table_in_the_terminal(
    two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_compare(*two, "--out", tmp_path / "out") == 0
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
        run_compare(
            *two, "--out", out, "--csv", out / "t.csv", "--markdown", out / "t.md", "--latex", out / "t.tex"
        )
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
    assert (
        run_compare(f"{label}={first}", "--out", out, "--latex", out / "t.tex", "--markdown", out / "t.md")
        == 0
    )
    latex = (out / "t.tex").read_text()
    assert r"A\_\{x\} \& \textbackslash{}b|\#1" in latex
    assert r"50\%\_of|it & 20.0 & $-$3.5 $\pm$ 0.7 \\" in latex
    assert r"| 50%\_of\|it | 20.0 | -3.5 ± 0.7 |" in (out / "t.md").read_text()


def test_different_updates_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write_run(tmp_path / "a", [60, 62])
    second = write_run(tmp_path / "b", [50, 52], algo="mobile", steps=6000)
    assert run_compare(first, second, "--out", tmp_path / "out") == 0
    text = capsys.readouterr().out
    assert re.search(r"updates\W+300\W+6k\b", text)
    assert "Numbers of updates differ." in text


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
        return [bad], "results.json cannot be used: it is not JSON"
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
        "study": "results.json cannot be used: 'algorithms' is missing",
        "infinite": "'algorithms.MOBILE.returns.1' is nan, which is not a finite number",
        "short": "it needs one return of MOBILE for each of 2 seeds",
        "scale": f"{bad} was scored with other reference returns",
    }[kind]


MISTAKES = "missing unfinished twice overlap nothing half unmeasured study infinite short scale"


@pytest.mark.parametrize("kind", MISTAKES.split())
def test_mistakes_are_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    runs, sentence = mistake(tmp_path, kind)
    assert run_compare(*runs, "--out", tmp_path / "out", "--csv", tmp_path / "t.csv") == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "t.csv").exists()


def test_an_impossible_output_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "a", [60, 62])
    assert run_compare(folder, "--out", folder / "config.json") == 2
    assert capsys.readouterr().err.startswith(f"mcetm: Cannot create the folder {folder / 'config.json'}")


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

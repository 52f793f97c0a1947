"""`mcetm report`: the page of a run, of several, and an index; each a file that needs nothing beside it."""

import json
import re
from pathlib import Path

import pytest

from mcetm.agents.inside import Inside
from mcetm.cli import main
from mcetm.estimates import Estimate
from mcetm.report.findings import Findings, read_findings
from tests.pipeline.runs import write_run


def report(*arguments: object) -> int:
    return main(["report", *(str(a) for a in arguments)])


def needs_nothing(page: str) -> bool:
    """No file and no address is loaded."""
    return not re.search(r'<link|<script src|src="(?!data:)|@import|url\((?!data:)', page)


def estimate(policy: str, value: float, interval: tuple[float, float], *, believed: bool) -> Estimate:
    return Estimate(
        estimator="model",
        policy=policy,
        value=value,
        interval=list(interval),
        believed=believed,
        reasons=["because of this"],
        quantity="expected return",
        horizon=10,
        discount=1.0,
        log="mine.csv",
        log_checksum="ab" * 32,
        log_return=1.0,
        log_spread=1.0,
        details={},
        settings={},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("some") / "runs"
    write_run(folder / "a", [60, 62, 64])
    write_run(folder / "b", [50, 52, 54], algo="mobile")
    Findings((Inside(100, 0.99, 0.8, 0.995, (0.8,), (("x", 1.0),)),)).save(folder / "a")
    return folder


def test_the_page_of_a_run_is_made_anew(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "a" / "report.html").unlink(missing_ok=True)
    assert report(runs / "a") == 0
    assert f"wrote {runs / 'a' / 'report.html'}" in capsys.readouterr().out
    page = (runs / "a" / "report.html").read_text()
    assert needs_nothing(page)
    assert page.index("What it earns") < page.index("In 80.0% of held-out states") < page.index("Settings")
    assert page.count("uPlot, https://github.com/leeoniya/uPlot") == 1, "the library is there once"
    assert page.count("<!--how-->") == 0
    assert page.count("Drag to zoom") == 1
    chart = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', page)[0])
    assert [line["name"] for line in chart["lines"]] == ["MC-ETM", "the log"]
    assert chart["x"] == [100, 200, 300]
    assert all(len(line["values"]) == 3 for line in chart["lines"])
    assert all(alt for alt in re.findall(r'<img [^>]*alt="([^"]*)"', page))
    assert read_findings(runs / "b") is None
    assert report(runs / "b") == 0
    assert "Nothing is known" in (runs / "b" / "report.html").read_text()


def test_several_runs_are_on_one_page(runs: Path, tmp_path: Path) -> None:
    assert report(runs / "a", runs / "b", "--out", tmp_path) == 0
    page = (tmp_path / "report.html").read_text()
    assert needs_nothing(page)
    assert page.count("What it earns") == 2
    assert "Normalised scores" in page
    (chart,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert [line["name"] for line in json.loads(chart)["lines"]] == ["a", "b", "the log"]
    assert page.count("uPlot, https://github.com/leeoniya/uPlot") == 1


def test_a_run_that_nothing_is_known_of_hides_no_other(runs: Path, tmp_path: Path) -> None:
    bare = write_run(tmp_path / "bare", [1.0, 2.0], dataset="mine.csv", task=None)
    results = json.loads((bare / "results.json").read_text())
    results["algorithms"] = {"MC-ETM": None}
    (bare / "results.json").write_text(json.dumps(results))
    assert report(runs / "a", bare, "--out", tmp_path / "out") == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"bare has no returns to compare. Estimate them first: mcetm estimate {bare}" in page
    assert "Normalised scores" in page
    assert report(bare) == 0
    alone = (bare / "report.html").read_text()
    assert "Not measured: there was no environment" in alone
    assert "<h2>Returns</h2>" not in alone, "the verdict has said it"


def test_what_was_estimated_is_the_verdict(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [1.0, 2.0], dataset="mine.csv", task=None)
    results = json.loads((run / "results.json").read_text())
    results["algorithms"] = {"MC-ETM": None}
    (run / "results.json").write_text(json.dumps(results))
    estimate("seed-0", 5.0, (4.0, 6.0), believed=True).save(run / "estimates" / "seed-0-model.json")
    estimate("seed-1", 9.0, (-9.0, 20.0), believed=False).save(run / "estimates" / "seed-1-model.json")
    assert report(run) == 0
    page = (run / "report.html").read_text()
    assert "seed-0 would earn 5.00 (90 % interval 4.00 to 6.00; model-based): believed." in page
    assert "not to be believed" in page
    assert 'class="verdict good"' in page
    assert page.index("would earn") < page.index("Estimates from the log alone")


def test_an_index_links_every_report_and_says_which_run_is_not_finished(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many runs"
    write_run(folder / "one & only", [60.0])
    write_run(folder / "no text: \udcff", [60.0])
    begun = write_run(folder / "begun", [1.0])
    (begun / "results.json").unlink()
    broken = write_run(folder / "broken", [1.0])
    (broken / "results.json").write_text("{")
    assert report(folder) == 0
    page = (folder / "index.html").read_text()
    assert needs_nothing(page)
    assert 'href="one%20%26%20only/report.html"' in page
    assert 'href="no%20text%3A%20%FF/report.html"' in page
    assert (folder / "one & only" / "report.html").is_file()
    assert "begun is not finished" in page
    assert "broken" in page
    assert "<script" not in page, "there is nothing to zoom"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Name the folders of the runs"),
        (("nowhere",), "nowhere is not a run"),
        (("{runs}/a", "{runs}/a"), "named twice"),
        (("{runs}/a", "--out", "x"), "--out is for the page of several runs"),
        (("{runs}/a/figures",), "there is no run in it"),
    ],
)
def test_mistakes_are_one_sentence(
    runs: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "a" / "figures").mkdir(exist_ok=True)
    assert report(*(a.format(runs=runs) for a in arguments)) == 2
    assert words in capsys.readouterr().err


def test_findings_that_nobody_here_wrote_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [1.0])
    (run / "report.json").write_text('{"inside": 3}')
    assert report(run) == 2
    assert "report.json cannot be used" in capsys.readouterr().err

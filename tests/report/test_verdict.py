"""The first screen of a report says what was found, and never more."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcetm.agents.inside import Inside
from mcetm.report.findings import Findings
from mcetm.report.page import RunPage, write_report
from mcetm.report.verdict import verdict_of


def results(returns: list[float] | None, data: float = -50.0) -> dict[str, Any]:
    found = None if returns is None else {"returns": returns, "score": None, "diagnosis": None}
    return {"data_return": data, "algorithms": {"BC": None, "MC-ETM": found}}


def inside(share: float, columns: tuple[tuple[str, float], ...] = ()) -> Inside:
    return Inside(1000, 0.99, share, 0.995, (share,) * 9, columns)


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ([-20.0, -30.0], "MC-ETM earns -25.0 ± 7.1 an episode (mean ± spread of 2 seeds)"),
        ([-20.0, -30.0], "The log's own episodes earned -50.0: more than the log in every seed."),
        ([-20.0, -70.0, -60.0], "more than the log in 1 of 3 seeds"),
        ([-70.0, -60.0], "no more than the log in any seed"),
        ([-20.0], "MC-ETM earns -20.0 an episode (1 seed)"),
        (
            None,
            "Not measured: there was no environment to try MC-ETM in. The log's own episodes earned -50.0.",
        ),
    ],
)
def test_what_it_earns(returns: list[float] | None, words: str) -> None:
    assert words in " ".join(verdict_of(results(returns), []).earns)


def test_worse_than_the_log_is_not_to_be_used() -> None:
    assert verdict_of(results([-70.0, -60.0]), []).next[0].startswith("Do not use these policies")
    assert "mcetm select RUN" in verdict_of(results([-20.0, -60.0]), []).next[0]
    assert "mcetm estimate there" in verdict_of(results(None), [], "there").next[0]


def test_where_it_can_be_trusted() -> None:
    unknown = verdict_of(results([-20.0]), [])
    assert unknown.trusted == (
        "Nothing is known: this algorithm learned in no world, so it has no score of pairs.",
    )
    assert unknown.next == ()
    often = verdict_of(results([-20.0]), [inside(0.62, (("level_1", 0.7), ("pump", 0.2))), inside(0.99)])
    assert "In 62.0% to 99.0% of held-out states" in often.trusted[0]
    assert often.trusted[2] == "What is outside is so mostly by: level_1, pump."
    assert any(sentence.startswith("The policy often does") for sentence in often.next)
    rarely = verdict_of(results([-20.0]), [inside(0.997)])
    assert len(rarely.trusted) == 2
    assert not any(sentence.startswith("The policy often does") for sentence in rarely.next)


def test_where_a_policy_goes_itself_counts() -> None:
    found = verdict_of(results([-20.0]), [inside(0.999)], own_inside=0.8)
    assert found.trusted[1] == "In its own episodes 80.0% of its steps are inside."
    assert any(sentence.startswith("The policy often does") for sentence in found.next)


def test_a_share_of_few_episodes_says_so() -> None:
    few = replace(inside(0.999), episodes=(1.0, 0.998))
    said = verdict_of(results([-20.0]), [few]).trusted
    assert "Only 2 episodes were held out, so the share of held-out states says little." in said


def test_a_better_algorithm_of_the_table_is_named() -> None:
    table = results([-20.0, -30.0])
    table["algorithms"] = {"MOBILE": {"returns": [-10.0, -12.0]}, **table["algorithms"]}
    words = "MOBILE earned more on the same log: -11.0 ± 1.4. Consider a run of it."
    assert words in verdict_of(table, []).next
    beside_its_gain = {**table, "data_return": -900.0}
    in_some_seeds = {**table, "algorithms": {**table["algorithms"], "MOBILE": {"returns": [-10.0, -38.0]}}}
    for too_little in (beside_its_gain, in_some_seeds):
        assert not any("earned more" in sentence for sentence in verdict_of(too_little, []).next)


def test_it_stands_first_on_the_page_and_nothing_in_it_is_markup(tmp_path: Path) -> None:
    run = RunPage(
        tmp_path,
        title="a run",
        results=results([-20.0, -30.0]),
        histories={"MC-ETM": []},
        config={},
        environment={},
        findings=Findings((inside(0.5, (("<b>level</b>", 0.9),)),)),
    )
    page = write_report(run).read_text()
    assert page.index("<h2>What it earns</h2>") < page.index("<table>")
    assert "&lt;b&gt;level&lt;/b&gt;" in page
    assert "<b>level</b>" not in page
    assert 'name="viewport"' in page

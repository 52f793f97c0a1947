"""The bound study: what it counts, how it compares, and the whole of it at a small size."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcetm.cli import main
from mcetm_experiments.bound import study
from mcetm_experiments.bound.finite import Learning, certificates, make_cell, returns, settled, statements
from mcetm_experiments.bound.settings import BoundStudy
from mcetm_experiments.bound.study import BoundConfig, run_bound
from mcetm_experiments.theory import FAMILIES
from tests.experiments.drawn import words_in

SMALL = Learning(levels=(1.0, 0.5), betas=(0.0, 1.0), rounds=1, members=3)


def tiny() -> BoundConfig:
    return BoundConfig(mdps=4, rows=(40, 80), betas=(2.0,), levels=(0.5,), variants={"main": SMALL})


def test_the_study_writes_what_it_found_and_goes_on_after_finished_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.PRESETS, "quick", tiny)
    out = tmp_path / "out"
    assert main(["study", "bound", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for words in ("pessimism of the fixed point", "MOReL", "truncation only", "torn grid"):
        assert words in said
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert set(results["variants"]["main"]) == set(FAMILIES)
    for parts in results["variants"]["main"].values():
        assert set(parts) == {"40", "80"}
        for part in parts.values():
            assert part["certificates"]["violated"] == 0
            assert part["certificates"]["MOReL violated"] == 0
            assert part["certificates"]["no OOD pair met"]["unlike MOBILE"] == 0
            assert 0 < part["visited pairs"] <= 1
    lines = {"terms": "truncation", "certificates": "hybrid, as proved", "returns": "truncation only"}
    for name, line in lines.items():
        assert {line, *FAMILIES} <= words_in(out / name)

    def refuse(*_: object) -> None:
        raise AssertionError("a finished part was measured again")

    monkeypatch.setattr(study, "_measure", refuse)
    again = run_bound(BoundStudy(out=out))
    assert json.loads(json.dumps(again["variants"])) == results["variants"]
    with pytest.raises(AssertionError, match="again"):
        run_bound(BoundStudy(out=out), replace(tiny(), rows=(40, 90)))


@pytest.mark.parametrize("options", [["--mdps", "3"], ["--seed", "-1"]])
def test_a_mistake_is_one_sentence(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "bound", "--out", str(tmp_path / "out"), *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_where_the_assumption_holds_the_floor_makes_every_claim_true_and_zero_does_not() -> None:
    """On the cliff, rewards of both signs break the paper's bound although its assumption holds."""
    cell = make_cell("cliff chain", 20, 400, Learning(), seed=0)
    found = {arm: shares["at a valid β"] for arm, shares in statements(cell, (1.0,), (0.7, 0.4)).items()}
    claims = ("assumption", "lemma 1", "pessimism of the fixed point", "bound as written", "bound as proved")
    floor = found["with the floor, r of both signs"]
    assert floor["cases"] == 40
    assert [floor[claim] for claim in claims] == [1.0] * len(claims)
    written = found["paper's operator, r of both signs"]
    assert written["assumption"] == written["lemma 1"] == 1.0
    assert written["bound as written"] < 0.9
    assert found["paper's operator, r ≥ 0"]["bound as written"] == 1.0


def test_with_the_floor_no_constant_in_the_rewards_matters() -> None:
    cell = make_cell("torn grid", 3, 200, SMALL, seed=1)
    usual, shifted = returns(cell), returns(cell, less=0.5)
    np.testing.assert_allclose(usual["grid"], shifted["grid"], atol=1e-9)
    as_written = returns(cell, less=0.5, floored=False)
    assert np.abs(usual["grid"] - as_written["grid"]).max() > 0.01


def test_scores_lie_between_the_worst_policy_and_the_best_and_much_data_reach_it() -> None:
    cell = make_cell("Garnet", 4, 8_000, SMALL, seed=2)
    found = returns(cell)
    assert found["grid"].min() >= 0
    assert found["grid"].max() <= 1 + 1e-9
    assert found["grid"][0, 0].min() > 0.97
    assert found["behaviour"].max() < 0.9


def test_tightening_delta_trades_consistency_for_truncation() -> None:
    found = certificates(make_cell("cliff chain", 10, 1600, replace(SMALL, levels=(1.0, 0.2)), seed=3))
    np.testing.assert_array_equal(found["truncation"][0], 0)
    assert found["truncation"][1].mean() > 0.3
    assert found["consistency"][1].mean() < found["consistency"][0].mean()
    np.testing.assert_allclose(found["proved"], found["consistency"] + found["truncation"])
    assert (found["proved"] <= found["paper"] + 1e-9).all()
    np.testing.assert_allclose(found["trivial"], 0.9)  # γ: the largest gap, one step later


def test_u_settles_under_a_small_penalty() -> None:
    cell = make_cell("Garnet", 10, 400, SMALL, seed=0)
    without, small, large = settled(cell, (0.0, 0.5, 64.0), 0.7)
    assert without == 1.0
    assert small > large


def test_settings_are_chosen_on_one_half_and_tested_on_the_other() -> None:
    grid = np.zeros((2, 2, 4))
    grid[0, 1] = [0.9, 0.9, 0.5, 0.7]  # penalty only: best on the first half, and not on the second
    grid[1, 0] = [0.8, 0.8, 1.0, 1.0]
    found = study._compare_returns({"grid": grid, "behaviour": np.full(4, 0.25)}, SMALL)
    assert (found["hybrid"]["level"], found["hybrid"]["beta"]) == (1.0, 1.0)
    assert found["hybrid"]["mean"] == pytest.approx(0.6)
    assert found["truncation only"]["mean"] == 1.0
    assert found["hybrid − truncation only"]["mean"] == pytest.approx(-0.4)
    assert found["hybrid − truncation only"]["below"] == 1.0
    assert found["hybrid − penalty only"]["mean"] == 0.0
    assert found["model alone"]["mean"] == 0.0


def test_a_bound_beyond_that_of_truncating_everything_says_nothing() -> None:
    none = np.zeros((2, 4), bool)
    bounds = {
        "proved": np.array([[np.inf, 2.0, 0.5, 3.0], [0.8, 0.6, 0.4, 0.2]]),
        "paper": np.full((2, 4), 5.0),
        "morel": np.array([[0.1, 0.1, 0.3, 0.5], [9.0, 9.0, 9.0, 9.0]]),
        "trivial": np.full((2, 4), 0.9),
        "gap": np.full((2, 4), 0.1),
        "beta": np.array([[np.inf, 9.0, np.inf, 2.0], [1.0, 1.0, 1.0, 1.0]]),
        "violated": none, "morel violated": none, "unmet": none, "unlike mobile": none,
    }  # fmt: skip
    found = study._compare_certificates(bounds, SMALL)
    assert found["hybrid"]["level"] == 0.5
    assert found["hybrid"]["mean"] == pytest.approx(0.3)
    assert found["hybrid"]["gap / bound"] == pytest.approx((0.25 + 0.5) / 2)
    assert found["MOBILE"]["mean"] == pytest.approx(0.7)
    assert found["MOBILE"]["says something"] == 0.5
    assert found["MOBILE"]["valid beta"] == 0.5
    assert found["paper"]["mean"] == pytest.approx(0.9)
    assert found["paper"]["says something"] == 0.0
    assert found["MOReL"]["mean"] == pytest.approx(0.4)
    assert found["hybrid − MOBILE"]["mean"] == pytest.approx(-0.4)

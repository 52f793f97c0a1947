"""What is tried, what is chosen by, and that it is said how much was tried."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcetm import UserError
from mcetm.pipeline.sweep.executors import usual_executor
from mcetm.pipeline.sweep.plan import SweepPlan
from mcetm.pipeline.sweep.score import Score, choices, score_of
from mcetm.pipeline.sweep.search import rounds
from tests.pipeline.sweep.fakes import a_job, a_result


def a_plan(**more: Any) -> SweepPlan:
    content: dict[str, Any] = {"logs": ["pendulum-mixed"], "systems": [{"algorithm": "mobile"}], **more}
    return SweepPlan.model_validate(content)


SEARCHED = {
    "algorithm": "mobile",
    "over": {
        "algorithm.penalty": {"low": 0.1, "high": 10.0, "log": True},
        "algorithm.rollout.horizon": {"low": 1, "high": 10},
        "algorithm.learner.width": {"choices": [32, 64]},
    },
}


def nothing(label: str, log: str) -> Score | None:
    return None


def test_a_grid_has_every_combination_on_every_log_in_every_world(tmp_path: Path) -> None:
    plan = a_plan(
        logs=["pendulum-mixed", "tank-mixed"],
        worlds=[[0, 1], [2]],
        systems=[
            {
                "algorithm": "mopo",
                "grid": {"algorithm.penalty": [0.5, 1.0], "algorithm.rollout.horizon": [1, 2, 5]},
            },
            {"algorithm": "bc"},
        ],
    )
    (only,) = rounds(plan, tmp_path, nothing)
    assert len(only) == 2 * 2 * (2 * 3 + 1)
    assert {one.label for one in only} >= {"MOPO penalty=0.5 horizon=5", "behaviour cloning"}
    one = next(one for one in only if one.label == "MOPO penalty=0.5 horizon=5")
    config = one.cell.config
    assert (config.algorithm.penalty, config.algorithm.rollout.horizon) == (0.5, 5)
    assert len({one.cell.key for one in only if one.source == "pendulum-mixed"}) == len(only) // 2


def test_random_settings_lie_in_their_ranges_and_are_the_same_again(tmp_path: Path) -> None:
    plan = a_plan(systems=[SEARCHED], search={"trials": 12})
    (first,) = rounds(plan, tmp_path, nothing)
    (again,) = rounds(plan, tmp_path, nothing)
    assert [one.values for one in first] == [one.values for one in again]
    assert len({one.label for one in first}) == 12
    penalties = [one.values["algorithm.penalty"] for one in first]
    assert all(0.1 <= penalty <= 10.0 for penalty in penalties)
    assert sum(penalty < 1.0 for penalty in penalties) >= 3, "by factors, not by differences"
    assert {type(one.values["algorithm.rollout.horizon"]) for one in first} == {int}
    other = a_plan(systems=[SEARCHED], search={"trials": 12, "seed": 1})
    assert [one.values for one in next(rounds(other, tmp_path, nothing))] != [one.values for one in first]


def test_few_choices_are_tried_once_each(tmp_path: Path) -> None:
    system = {"algorithm": "bc", "over": {"algorithm.width": {"choices": [8, 16]}}}
    (only,) = rounds(a_plan(systems=[system], search={"trials": 50}), tmp_path, nothing)
    assert sorted(one.values["algorithm.width"] for one in only) == [8, 16]


def test_optuna_learns_and_a_search_that_was_stopped_goes_on_with_the_same(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed (pip install 'mcetm[sweep]')")
    system = {"algorithm": "mobile", "over": {"algorithm.penalty": {"low": 0.0, "high": 10.0}}}
    plan = a_plan(systems=[system], search={"method": "optuna", "trials": 40, "batch": 10})

    def near_three(label: str, log: str) -> Score:
        return Score(-abs(float(label.rpartition("=")[2]) - 3.0), 1.0)

    def tried(place: str) -> list[list[float]]:
        parts = rounds(plan, tmp_path / place, near_three)
        return [[one.values["algorithm.penalty"] for one in part] for part in parts]

    found = tried("a")
    assert [len(part) for part in found] == [10] * 4
    off = [sum(abs(value - 3.0) for value in part) / 10 for part in found]
    assert off[-1] < 0.5 * off[0]
    stopped = rounds(plan, tmp_path / "b", near_three)
    for _ in range(2):
        next(stopped)
    assert tried("b") == found


def test_estimates_choose_unless_an_environment_is_named() -> None:
    assert a_plan().chosen_by == "estimates"
    assert a_plan(task="pendulum").chosen_by == "returns"
    assert a_plan(task="pendulum", objective="estimates").chosen_by == "estimates"


def test_cells_are_estimated_where_something_is_chosen_by_it(tmp_path: Path) -> None:
    def estimated(plan: SweepPlan) -> list[bool]:
        return [one.cell.estimate is not None for one in next(rounds(plan, tmp_path, nothing))]

    grid = {"algorithm": "bc", "grid": {"algorithm.width": [8, 16]}}
    assert estimated(a_plan(systems=[grid])) == [True, True]
    assert estimated(a_plan(systems=[grid], task="pendulum")) == [False, False]
    assert estimated(a_plan()) == [False], "with a single setting there is nothing to choose"


def test_the_choice_goes_by_what_can_be_believed_and_says_how_much_was_tried() -> None:
    jobs = [
        a_job(f"j{i}", label=f"BC width={i}", system="BC", values={"width": i}, seeds=[0, 1])
        for i in range(4)
    ]
    estimates = [
        [(10.0, True), (12.0, True)],
        [(90.0, False), (90.0, False)],
        [(14.0, True), (13.0, True)],
        [(None, False), (50.0, True)],
    ]
    found = {job.name: a_result(job, estimates=said) for job, said in zip(jobs, estimates, strict=True)}
    (chosen,) = choices(jobs, found, "estimates")
    assert (chosen.label, chosen.values) == ("BC width=2", {"width": 2})
    assert (chosen.settings, chosen.policies) == (4, 8)
    assert "4 settings, 8 policies tried" in str(chosen)
    (none,) = choices(jobs[1:2], found, "estimates")
    assert none.label is None
    assert "no estimate can be believed" in str(none)
    measured = {job.name: a_result(job, returns=[i, i]) for i, job in enumerate(jobs)}
    (best,) = choices(jobs, measured, "returns")
    assert best.label == "BC width=3"


def test_settings_whose_cells_are_not_all_there_are_not_chosen_yet() -> None:
    jobs = [
        a_job(f"{width}-{world}", label=f"BC width={width}", system="BC", values={"width": width})
        for width in (8, 16)
        for world in (0, 1)
    ]
    found = {job.name: a_result(job, returns=[float(job.values["width"])]) for job in jobs[:3]}
    (chosen,) = choices(jobs, found, "returns")
    assert chosen.label == "BC width=8"
    assert chosen.policies == 3


def test_a_failed_seed_has_no_score_of_its_own() -> None:
    assert score_of([], "returns") is None


@pytest.mark.parametrize(
    ("systems", "words"),
    [
        ([{"algorithm": "bc"}, {"algorithm": "bc", "set": ["algorithm.width=8"]}], "give each a label"),
        ([{"algorithm": "bc", "grid": {"algorithm.widht": [8]}}], "did you mean 'algorithm.width'"),
        ([{"algorithm": "bv"}], "Unknown algorithm 'bv'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    tmp_path: Path, systems: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        next(rounds(a_plan(systems=systems), tmp_path, nothing))


def test_the_plans_of_the_page_are_plans(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "sweep.md").read_text(encoding="utf-8")
    blocks = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    usual = {"logs": ["pendulum-mixed"], "systems": [{"algorithm": "bc"}]}
    assert len(blocks) == 4
    plans = [SweepPlan.model_validate({**usual, **block, "executor": {}}) for block in blocks]
    for plan in plans:
        without = plan.model_copy(update={"search": plan.search.model_copy(update={"method": "random"})})
        assert next(rounds(without, tmp_path, nothing))
    for block in blocks:
        executor = usual_executor(block.get("executor", {}))
        assert SweepPlan.model_validate({**usual, "executor": executor}).executor.name == executor["name"]


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ({"algorithm": "mobile", "model": "stranger:Model"}, "there is no module 'stranger' here"),
        ({"algorithm": "mobile", "set": ["model.name=stranger:Model"]}, "a plan sets parts of algorithm"),
        ({"algorithm": "bc", "set": ["models_from=/somewhere"]}, "sets 'models_from=/somewhere'"),
        ({"algorithm": "bc", "grid": {"dataset": ["other"]}}, "sets 'dataset="),
    ],
)
def test_a_plan_from_anybody_imports_nothing_and_reaches_parts_only(
    tmp_path: Path, system: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        next(rounds(a_plan(systems=[system]), tmp_path, nothing))

"""Plans: what a TOML file asks for becomes cells, and what it cannot ask for is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcetm import UserError
from mcetm.pipeline import plain_of
from mcetm_experiments.benchmark.plan import BenchmarkPlan, planned, read_plan

SMALL = """
title = "Two systems"
preset = "quick"
[groups]
both = ["pendulum-mixed", "tank-mixed"]
[[table]]
name = "main"
title = "Main"
logs = ["both"]
[[table.systems]]
algorithm = "bc"
worlds = [[5, 6], [9]]
[[table.systems]]
algorithm = "td3bc"
label = "brief"
steps = 7
set = ["algorithm.learner.width=8"]
worlds = [[5]]
"""


def plan_of(text: str, folder: Path) -> BenchmarkPlan:
    path = folder / "plan.toml"
    path.write_text(text)
    return read_plan(str(path))


def test_a_table_is_its_logs_by_its_systems_by_their_worlds(tmp_path: Path) -> None:
    plan = plan_of(SMALL, tmp_path)
    cells = [one.cell for one in planned(plan, plan.table[0])]
    found = [(cell.log, cell.config.label, cell.config.seed, cell.config.seeds) for cell in cells]
    assert found == [
        ("pendulum-mixed", "behaviour cloning", 5, 2),
        ("pendulum-mixed", "behaviour cloning", 9, 1),
        ("tank-mixed", "behaviour cloning", 5, 2),
        ("tank-mixed", "behaviour cloning", 9, 1),
        ("pendulum-mixed", "brief", 5, 1),
        ("tank-mixed", "brief", 5, 1),
    ]
    assert cells[-1].config.algorithm.updates == 7
    assert plain_of(cells[-1].config)["algorithm"]["learner"]["width"] == 8
    assert cells[0].episodes == 20


def test_no_seed_of_the_papers_tables_was_looked_at_while_settings_were_developed() -> None:
    plans = Path(__file__).parents[3] / "benchmarks" / "plans"
    seeds = lambda plan: {  # noqa: E731
        seed for table in plan.table for system in table.systems for world in system.worlds for seed in world
    }
    developed = [seeds(read_plan(str(path))) for path in sorted(plans.glob("*.toml"))]
    assert len(developed) >= 2
    assert not seeds(read_plan("paper")) & set().union(*developed)


def test_the_papers_plan_has_every_log_and_every_published_number() -> None:
    plan = read_plan("paper")
    main = plan.table[0]
    assert len(plan.logs_of(main)) == 12
    assert plan.published is not None
    assert plan.published.of("MC-ETM", "hopper-medium") == 107.0
    assert plan.published.of("MC-ETM", "hopper-medium-v2") == 107.0
    assert plan.published.of("IQL", "hopper-medium") is None
    average = {label: sum(scores) / 12 for label, scores in plan.published.scores.items()}
    # The paper's own averages, to the digit they are printed with.
    for label, mean in (("MC-ETM", 80.8), ("MOBILE", 80.0), ("TD3+BC", 58.2), ("EMPO", 35.3)):
        assert average[label] == pytest.approx(mean, abs=0.06)
    ours = {one.label for one in planned(plan, main)}
    assert set(plan.published.scores) <= ours
    for table in plan.table:
        assert list(planned(plan, table)), table.name


def test_official_files_stand_under_their_own_names() -> None:
    plan = read_plan("paper")
    logs = {one.cell.log for one in planned(plan, plan.chosen(["sparse-1"])[0], official=True)}
    assert logs == {"hopper-medium-v2 1 %", "halfcheetah-medium-v2 1 %", "walker2d-medium-v2 1 %"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("worlds = [[5, 6], [9]]", "worlds = [[5, 7]]"), "follow each other"),
        (("worlds = [[5, 6], [9]]", "worlds = [[5, 6], [6]]"), "every seed once"),
        (("worlds = [[5, 6], [9]]", "worlds = []"), "worlds"),
        (('name = "main"', 'name = "Main table"'), "name"),
        (('title = "Main"', 'title = "Main"\naxis = "λ"'), "place `at`"),
        (('preset = "quick"', "preset = 3"), "preset"),
        (("[groups]", "[group]"), "group"),
        (("[[table]]", "[[table"), "not TOML"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_in_a_sentence(
    change: tuple[str, str], word: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=word):
        plan_of(SMALL.replace(*change), tmp_path)


def test_unknown_names_are_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no plan 'papr'"):
        read_plan("papr")
    plan = plan_of(SMALL, tmp_path)
    with pytest.raises(UserError, match="no table 'second'; it has: main"):
        plan.chosen(["second"])
    twice = plan_of(SMALL.replace('label = "brief"', 'label = "behaviour cloning"'), tmp_path)
    with pytest.raises(UserError, match="two systems called behaviour cloning; give each a label"):
        list(planned(twice, twice.table[0]))
    wrong = plan_of(SMALL.replace('"td3bc"', '"td3"'), tmp_path)
    with pytest.raises(UserError, match="Unknown algorithm 'td3'"):
        list(planned(wrong, wrong.table[0]))


@pytest.mark.parametrize(
    "change",
    ["dataset=x.npz", "task=helper:jump", "seeds=3", "label=x", "model.name=a:b", "model={}"],
)
def test_what_has_a_field_of_its_own_is_not_set_by_its_path(tmp_path: Path, change: str) -> None:
    plan = plan_of(SMALL.replace("algorithm.learner.width=8", change), tmp_path)
    with pytest.raises(UserError, match=r"The table 'main' sets '.*'; a plan sets parts"):
        list(planned(plan, plan.table[0]))


def test_a_plan_imports_nothing_that_its_reader_has_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("helper.py").write_text("raise SystemExit('ran')")
    plan = plan_of(SMALL.replace("td3bc", "mopo").replace("steps = 7", 'model = "helper:Model"'), tmp_path)
    with pytest.raises(UserError, match=r"names the model .*, and that you have not named before"):
        list(planned(plan, plan.table[0]))

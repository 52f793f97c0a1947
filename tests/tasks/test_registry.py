import sys
from pathlib import Path

import pytest

from mcetm import ReferenceScores, Task, UserError, get_task, register_task
from mcetm.tasks import registry


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("hopper", -20.272305, 3234.3), ("walker2d", 1.629008, 4592.3), ("halfcheetah", -280.178953, 12135.0)],
)
def test_d4rls_reference_returns_are_0_and_100(name: str, low: float, high: float) -> None:
    scores = get_task(name).scores
    assert scores is not None
    assert scores.normalize(low) == 0.0
    assert scores.normalize(high) == pytest.approx(100.0)


def test_a_spread_is_scaled_never_shifted() -> None:
    scores = ReferenceScores(random=-100.0, expert=300.0, origin="made up")
    assert scores.normalize_spread(0.0) == 0.0
    assert scores.normalize_spread(40.0) == pytest.approx(10.0)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"Unknown task 'hoper'; did you mean 'hopper'\?"):
        get_task("hoper")
    with pytest.raises(UserError, match="known: pendulum, tank, hopper"):
        get_task("xyz")


def test_a_module_in_front_of_a_name_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks_of_mine.py").write_text(
        "import mcetm\nmcetm.register_task(mcetm.Task('jump', 'Jump-v0', 2, (-1.0,), (1.0,), 10))\n"
    )
    assert get_task("tasks_of_mine:jump").obs_dim == 2
    with pytest.raises(UserError, match="Cannot import 'no_such_module'"):
        get_task("no_such_module:jump")


def test_tasks_can_be_kept_in_sets() -> None:
    assert len({get_task("hopper"), get_task("hopper"), get_task("walker2d")}) == 2


def test_users_register_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    reach = Task(
        "reach", "my_robots:Reach-v0", obs_dim=10, action_low=(-1.0,), action_high=(1.0,), time_limit=50
    )
    assert register_task(reach) is get_task("reach")
    register_task(reach)  # a notebook cell may be run twice
    with pytest.raises(UserError, match="already registered"):
        register_task(Task("reach", "other:Reach-v0", 10, (-1.0,), (1.0,), 50))
    with pytest.raises(UserError, match="1 lower and 2 upper"):
        Task("odd", "other:Odd-v0", 10, (-1.0,), (1.0, 1.0), 50)
    with pytest.raises(UserError, match="not below its upper one"):
        Task("odd", "other:Odd-v0", 10, (1.0,), (-1.0,), 50)
    with pytest.raises(UserError, match="at least one observation"):
        Task("odd", "other:Odd-v0", 0, (-1.0,), (1.0,), 50)
    with pytest.raises(UserError, match="not below its upper one"):
        Task("odd", "other:Odd-v0", 10, (float("nan"),), (1.0,), 50)
    with pytest.raises(UserError, match="must be finite, and differ"):
        ReferenceScores(1.0, 1.0, "nowhere")
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(UserError, match="must be finite, and differ"):
            ReferenceScores(value, 1.0, "nowhere")

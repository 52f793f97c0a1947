"""A list of cells: every one is done once, whatever happens to processes, disks and other lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcetm import UserError
from mcetm.files import write_json
from mcetm.pipeline.lock import locked
from mcetm.pipeline.sweep import run as running
from mcetm.pipeline.sweep.attempt import Outcome, attempt, read_failure
from mcetm.pipeline.sweep.jobs import write_jobs
from mcetm.pipeline.sweep.run import run_jobs
from mcetm.pipeline.sweep.status import status_of
from tests.pipeline.sweep.fakes import Scripted, a_job, a_result


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PAUSE", 0.0)


def test_a_process_that_dies_is_replaced_and_one_that_dies_thrice_has_a_reason(tmp_path: Path) -> None:
    once, always = a_job("once"), a_job("always")
    gone = Outcome("lost", "its process has ended by SIGKILL, perhaps for want of memory")
    run_jobs([once, always], tmp_path, Scripted(tmp_path, {"once": [gone], "always": [gone] * 9}))
    assert once.result(tmp_path).exists()
    assert read_failure(tmp_path, always) == (
        "Its process has ended by SIGKILL, perhaps for want of memory, 3 times."
    )


def test_what_is_done_or_has_failed_is_never_begun_again(tmp_path: Path) -> None:
    jobs = [a_job("a"), a_job("b"), a_job("c")]
    first = Scripted(tmp_path, {"b": [Outcome("failed", "it has diverged")]})
    run_jobs(jobs, tmp_path, first)
    (tmp_path / "failures").mkdir()
    (tmp_path / "failures" / "b.txt").write_text("it has diverged\n")
    second = Scripted(tmp_path, {})
    run_jobs([*jobs, a_job("d")], tmp_path, second)
    assert second.begun == ["d"]


def test_a_cell_that_another_list_is_at_is_asked_for_again(tmp_path: Path) -> None:
    executor = Scripted(tmp_path, {"a": [Outcome("busy"), Outcome("busy")]})
    run_jobs([a_job("a"), a_job("b")], tmp_path, executor)
    assert executor.begun.count("a") == 3
    assert executor.begun.count("b") == 1


def test_models_that_several_cells_need_are_waited_for_by_none(tmp_path: Path) -> None:
    jobs = [a_job(name, world="w") for name in "abc"] + [a_job("other")]
    executor = Scripted(tmp_path, {}, room=4)
    run_jobs(jobs, tmp_path, executor)
    assert executor.begun[:2] == ["a", "other"], "b and c would only wait for the models of a"
    assert executor.together == 2
    (tmp_path / "worlds" / "v").mkdir(parents=True)
    write_json(tmp_path / "worlds" / "v" / "world.json", {})
    executor = Scripted(tmp_path, {}, room=4)
    run_jobs([a_job(f"{name}2", world="v") for name in "abc"], tmp_path, executor)
    assert executor.together == 3, "they are there"


def test_a_full_disk_of_one_machine_is_no_failure_of_the_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = Outcome("no room", "Cannot write x: No space left on device.", "node 7")
    run_jobs([a_job("a")], tmp_path, Scripted(tmp_path, {"a": [full]}))
    assert "It is tried elsewhere." in capsys.readouterr().err
    assert status_of(tmp_path, [a_job("a")]).count("done") == 1
    # Where there is no other machine, it ends the sweep, and nothing counts as failed.
    here = Outcome("no room", "Cannot write x: No space left on device.")
    with pytest.raises(UserError, match="call again to go on"):
        run_jobs([a_job("b")], tmp_path, Scripted(tmp_path, {"b": [here]}))
    assert read_failure(tmp_path, a_job("b")) is None


def test_time_that_is_over_begins_nothing(tmp_path: Path) -> None:
    executor = Scripted(tmp_path, {})
    run_jobs([a_job("a")], tmp_path, executor, minutes=0.0)
    assert executor.begun == []


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    outcome = attempt(a_job("a"), tmp_path, place="node 7")
    assert outcome.kind == "no room"
    assert "needs a folder that all share" in outcome.words


def test_status_tells_what_runs_from_what_was_stopped(tmp_path: Path) -> None:
    jobs = [a_job(name, system="s") for name in ("done", "runs", "stopped", "waits", "failed")]
    write_jobs(tmp_path, jobs)
    write_json(jobs[0].result(tmp_path), a_result(jobs[0], returns=[-900.0]).model_dump())
    for job in jobs[1:3]:
        job.run(tmp_path).mkdir(parents=True)
        (job.run(tmp_path) / "metrics.jsonl").write_text('{"step": 20}\n{"step": 50}\n{"ste')
    (tmp_path / "failures").mkdir()
    (tmp_path / "failures" / "failed.txt").write_text("it has diverged\n")
    with locked(jobs[1].claim(tmp_path)):
        status = status_of(tmp_path)
        assert [cell.state for cell in status.cells] == ["done", "running", "stopped", "waiting", "failed"]
        assert [cell.updates for cell in status.cells] == [100, 50, 50, 0, 0]
        assert status.seconds_left == 20.0, "half, half and a whole cell of 10 seconds, one at a time"
        assert status.failures[0].failure == "it has diverged"
    assert [cell.state for cell in status_of(tmp_path).cells][1] == "stopped"

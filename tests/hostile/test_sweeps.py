"""Folders and plans of sweeps from anybody: a sentence or the truth, never a wait or a file elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcetm.pipeline.sweep.jobs import write_jobs
from tests.hostile.files import ours
from tests.hostile.outcomes import assert_refused, contents, no_hang, run
from tests.pipeline.sweep.fakes import a_job

PLAN = """
logs = ["LOG"]
task = "pendulum"
[[systems]]
algorithm = "bc"
"""


def failure(folder: Path) -> Path:
    (folder / "failures").mkdir()
    return folder / "failures" / "one.txt"


def metrics(folder: Path) -> Path:
    (folder / "runs" / "one").mkdir(parents=True)
    return folder / "runs" / "one" / "metrics.jsonl"


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe for a failure": (lambda f: os.mkfifo(failure(f)), "it is not a plain file"),
    "a device for a failure": (lambda f: failure(f).symlink_to("/dev/zero"), "it is not a plain file"),
    "a folder for a failure": (lambda f: failure(f).mkdir(), "it is not a plain file"),
    "an endless failure": (lambda f: failure(f).write_bytes(bytes(2**21)), "at most 1,048,576 are expected"),
    "a failure that is not UTF-8": (lambda f: failure(f).write_bytes(b"\xff\x1b[2J"), "1 failed"),
    "a pipe for metrics": (lambda f: os.mkfifo(metrics(f)), "1 stopped"),
    "a device for metrics": (lambda f: metrics(f).symlink_to("/dev/zero"), "1 stopped"),
    "deep metrics": (lambda f: metrics(f).write_text("[" * 4000), "1 stopped"),
    "an infinite step": (lambda f: metrics(f).write_text('{"step": Infinity}\n'), "1 stopped"),
    "a step of lists": (lambda f: metrics(f).write_text('{"step": [1]}\n'), "1 stopped"),
}


@pytest.mark.parametrize("case", ODD)
def test_status_waits_for_nobody(case: str, tmp_path: Path) -> None:
    change, words = ODD[case]
    folder = tmp_path / "sweep"
    write_jobs(folder, [a_job("one")])
    change(folder)
    found = run("sweep", "status", folder)
    if found.code == 2:
        assert_refused(found, words)
    else:
        assert found.code == 0
        assert words in found.out
        assert all(line.isprintable() for line in found.out.splitlines())


@pytest.mark.parametrize("field", ["name", "world"])
@pytest.mark.parametrize("name", ["../../elsewhere", "..", "", "a/b", "x" * 201, "\x1b[2J", "a\0"])
def test_a_cell_cannot_lie_elsewhere(field: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    write_jobs(folder, [a_job("one", world="w")])
    jobs = json.loads((folder / "jobs.json").read_text())
    jobs[0][field] = name
    (folder / "jobs.json").write_text(json.dumps(jobs))
    before = contents(tmp_path)
    assert_refused(run("sweep", "status", folder), f"'0.{field}'")
    assert contents(tmp_path) == before


HUNDRED = list(range(1, 101))
PLANS = {
    'grid = {"algorithm.width" = HUNDRED, "algorithm.steps" = HUNDRED, "algorithm.depth" = [1, 2]}': (
        "a grid of 20,000 settings"
    ),
    'over = {"algorithm.width" = {low = 1, high = 9223372036854775808}}': "algorithm.width",
    'over = {"algorithm.width" = {low = -1e400, high = 8}}': "over",
    "grid = 3": "systems.0.grid",
}
"""What a system is varied over."""


@pytest.mark.parametrize("system", PLANS)
def test_a_plan_that_has_no_end_is_refused_before_anything_starts(system: str, tmp_path: Path) -> None:
    text = PLAN.replace("LOG", str(ours(tmp_path))) + system.replace("HUNDRED", str(HUNDRED))
    (tmp_path / "plan.toml").write_text(text)
    before = contents(tmp_path)
    with no_hang():
        assert_refused(run("sweep", tmp_path / "plan.toml", "--out", tmp_path / "out"), PLANS[system])
    assert contents(tmp_path) == before


@pytest.mark.parametrize("change", ["fqe.steps", "fqe.steps=0", "nobody=1"])
def test_how_to_estimate_is_looked_at_even_where_returns_are_measured(change: str, tmp_path: Path) -> None:
    text = PLAN.replace("LOG", str(ours(tmp_path))).replace("task =", f'estimate = ["{change}"]\ntask =')
    (tmp_path / "plan.toml").write_text(text)
    before = contents(tmp_path)
    found = run("sweep", tmp_path / "plan.toml", "--out", tmp_path / "out")
    assert_refused(found, change.partition("=")[0])
    assert contents(tmp_path) == before


def test_minutes_that_are_no_number_and_a_folder_that_is_a_loop_are_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('logs = ["tank-mixed"]\nsystems = [{ algorithm = "bc" }]\nseeds = 1\n')
    (tmp_path / "loop").symlink_to("loop")
    assert_refused(
        run("sweep", plan, "--minutes", "nan", "--out", tmp_path / "out"), "should be a number of minutes"
    )
    assert_refused(run("sweep", plan, "--out", tmp_path / "loop"), "is a loop of links")

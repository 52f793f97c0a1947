"""Where cells are trained: what each place is told, and what comes of a cell that is told to go."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from mcetm import UserError
from mcetm.files import write_json
from mcetm.pipeline.sweep.attempt import Outcome
from mcetm.pipeline.sweep.executors import local, make_executor, slurm, usual_executor
from mcetm.pipeline.sweep.executors.local import LocalExecutor
from mcetm.pipeline.sweep.executors.settings import LocalSettings, RaySettings, SlurmSettings
from mcetm.pipeline.sweep.jobs import write_jobs
from mcetm.pipeline.sweep.plan import SweepPlan
from tests.pipeline.sweep.fakes import a_job, a_result


def test_cells_that_share_a_gpu_have_equal_parts_of_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    executor = LocalExecutor(LocalSettings(parallel=6), tmp_path)
    told = [executor._variables(place) for place in range(6)]
    assert [one["CUDA_VISIBLE_DEVICES"] for one in told] == ["4", "7"] * 3
    assert {one["XLA_CLIENT_MEM_FRACTION"] for one in told} == {"0.300"}
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "0.1")
    assert "XLA_CLIENT_MEM_FRACTION" not in executor._variables(0), "somebody has said otherwise"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert local.visible_gpus() == []


def test_an_executor_that_is_not_named_is_this_machine() -> None:
    content = {"logs": ["x"], "systems": [{"algorithm": "bc"}], "executor": {"parallel": 3}}
    assert SweepPlan.model_validate(content).executor == LocalSettings(parallel=3)
    assert usual_executor({"name": "ray"})["name"] == "ray"


@pytest.mark.parametrize(
    ("settings", "package", "extra"), [(RaySettings(), "ray", "ray"), (SlurmSettings(), "submitit", "slurm")]
)
def test_an_extra_that_is_missing_is_named(
    settings: Any, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else real(name))
    with pytest.raises(UserError, match=rf"pip install 'mcetm\[{extra}\]'"):
        make_executor(settings, tmp_path)


def test_a_slurm_job_that_is_told_to_go_saves_and_asks_for_another_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed (pip install 'mcetm[slurm]')")
    monkeypatch.setenv("SUBMITIT_LOCAL_JOB_ID", "1")
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    said: list[str] = []

    def train(*given: Any, **more: Any) -> Outcome:
        try:
            os.kill(os.getpid(), signal.SIGUSR2)
            raise AssertionError("it went on")
        except KeyboardInterrupt:
            said.append("saved")
            os.kill(os.getpid(), signal.SIGUSR2)  # told twice, it still saves once
            raise

    class ExitedError(Exception):
        """What ends the process there."""

    def submitits_own(number: int, frame: Any) -> None:
        said.append("requeued")
        raise ExitedError

    monkeypatch.setattr(slurm, "attempt_apart", train)
    task, job = slurm.CellTask(), a_job("a").model_dump()
    before = signal.signal(signal.SIGUSR2, submitits_own)
    try:
        with pytest.raises(ExitedError):
            task(job, str(tmp_path))
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert said == ["saved", "requeued"]
    for name in ("checkpoint", "__submitit_checkpoint__"):
        again = getattr(task, name)(job, str(tmp_path))
        assert isinstance(again.function, slurm.CellTask)
        assert again.args == (job, str(tmp_path))


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (mcetm[ray])")
def test_a_ray_cluster_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    executor = make_executor(RaySettings(address="127.0.0.1:9"), tmp_path)
    with pytest.raises(UserError, match=r"There is no Ray cluster at 127\.0\.0\.1:9"):
        executor.finished(120.0)


@pytest.fixture
def slurm_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with commands that do as SLURM's."""
    pytest.importorskip("submitit", reason="submitit is not installed (pip install 'mcetm[slurm]')")
    place = tmp_path / "bin"
    place.mkdir()
    text = (Path(__file__).parent / "fake_slurm.py").read_text()
    for name in ("sbatch", "srun", "sacct"):
        (place / name).write_text(f"#!{sys.executable}\n{text}")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return place


def test_an_array_of_jobs_is_submitted_once_and_waited_for(slurm_place: Path, tmp_path: Path) -> None:
    jobs, out = [a_job("a"), a_job("b")], tmp_path / "out"
    write_jobs(out, jobs)
    for job in jobs:  # so that there is nothing to train
        write_json(job.result(out), a_result(job, returns=[-900.0]).model_dump())
    settings = SlurmSettings(partition="gpu", minutes=30.5, parallel=1, gpus=2, more={"qos": "low"})
    first = make_executor(settings, out)
    first.submit(jobs)
    asked = (slurm_place / "submitted").read_text()
    for words in ("array=0-1%1", "partition=gpu", "time=31", "gpus-per-node=2", "qos=low", "signal=USR2@90"):
        assert words in asked
    # Whoever comes after the process that submitted them finds them there.
    second = make_executor(settings, out)
    second.submit(jobs)
    assert (slurm_place / "submitted").read_text() == asked
    over: list[tuple[str, str]] = []
    for _ in range(120):
        over += [(job.name, outcome.kind) for job, outcome in second.finished(1.0)]
        if len(over) == len(jobs):
            break
    assert sorted(over) == [("a", "done"), ("b", "done")], (slurm_place / "jobs.log").read_text()

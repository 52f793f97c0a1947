"""A run folder from anybody runs no code; a task that the user has named is known again."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from mcetm import Transitions, collect
from mcetm.agents.policy import load_policy
from mcetm.cli import main
from tests.conftest import random_fields
from tests.pipeline.runs import write_policy, write_run


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def run_of(folder: Path, task: str, *, configured: bool) -> Path:
    """A finished run that names a task in its configuration, or in that of its policy."""
    write_run(folder, [60.0], dataset="pendulum-mixed", task="pendulum")
    write_policy(folder / "policy" / "seed-0", task)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "task": task if configured else None}))
    return folder


@pytest.mark.parametrize("command", ["evaluate RUN", "compare RUN", "train --resume RUN"])
def test_a_run_folder_runs_no_code(marker: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    run_of(Path("run"), "helper:pendulum", configured="train" in command)
    assert run(*command.replace("RUN", "run").split()) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("mcetm: ")
    assert captured.err.endswith("if you trust it, add --task helper:pendulum.\n")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not marker.exists()


def test_a_run_folder_runs_no_code_in_a_process_of_its_own(marker: Path) -> None:
    run_of(Path("run"), "helper:pendulum", configured=True)
    done = subprocess.run(
        [sys.executable, "-m", "mcetm", "evaluate", "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not marker.exists()


@pytest.mark.parametrize("command", ["evaluate run --episodes 1", "compare run"])
def test_what_was_named_once_is_known_again(
    marker: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run_of(Path("run"), "helper:pendulum", configured=False)
    assert run(*command.split(), "--task", "helper:pendulum") == 0
    assert marker.exists()
    assert run(*command.split()) == 0
    Path("helper.py").write_text("raise SystemExit('changed')\n")
    del sys.modules["helper"]
    capsys.readouterr()
    assert run(*command.split()) == 2
    assert "has changed since you named it" in capsys.readouterr().err


def test_comparing_takes_a_task_of_ones_own_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", "run", "--task", "pendulum") == 2
    assert "as MODULE:NAME, and not for 'pendulum'" in capsys.readouterr().err


def test_a_run_with_a_task_of_ones_own_is_evaluated_and_resumed(
    marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collect("pendulum", 400, processes=1).with_metadata(task=None).save("log.npz")
    arguments = "--dataset log.npz --algo bc --steps 2 --seeds 1 --out run --set evaluation.episodes=1"
    assert run("train", "--task", "helper:jump", *arguments.split()) == 0
    assert load_policy("run").about["task"] == "helper:jump"
    assert run("evaluate", "run", "--episodes", 1) == 0
    assert run("train", "--resume", "run") == 0
    Path("helper.py").unlink()
    capsys.readouterr()
    assert run("train", "--resume", "run") == 2
    assert "there is no module 'helper' here" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_a_log_runs_no_code(marker: Path, suffix: str) -> None:
    fields = random_fields(obs_dim=3, action_dim=1)
    Transitions.from_arrays(**fields).with_metadata(task="helper:jump").save(f"log{suffix}")
    assert run("data", "inspect", f"log{suffix}") == 0
    if suffix == ".hdf5":
        with h5py.File("log.hdf5") as file:
            assert b"helper:jump" in bytes(np.asarray(file["metadata/mcetm"])[()])
    assert not marker.exists()

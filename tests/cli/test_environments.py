"""A run with an environment of one's own is evaluated, compared and resumed from any folder."""

import json
import shutil
import sys
from pathlib import Path

import pytest

import mcetm
from mcetm.cli import main
from tests.tasks.test_environments import plant as plant

SMALL = [
    *("--algo", "bc", "--seeds", "1", "--steps", "2"),
    *("--set", "algorithm.width=8", "algorithm.batch_size=8", "evaluation.episodes=1"),
]


def as_a_new_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported yet, and the current folder is another one."""
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        sys, "path", [p for p in sys.path if not p.endswith(("project", "elsewhere", "copy"))]
    )
    mcetm.tasks.registry._MADE.clear()
    sys.modules.pop("plant", None)


def test_a_run_is_used_from_another_folder(
    plant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mcetm.collect("plant:Plant", 60, processes=1).with_metadata(task=None).save("log.npz")
    assert main(["train", "log.npz", "--task", "plant:Plant", "--out", "run", *SMALL]) == 0
    said = "environment: plant:Plant, episodes of 1,000 steps at most (it has no limit of its own)\n"
    assert said in capsys.readouterr().out
    measured = json.loads((plant / "run" / "environment.json").read_text())["measured_in"]
    assert measured == {
        "task": "plant:Plant",
        "environment": "plant:Plant",
        "module_file": str(plant / "plant.py"),
    }
    run = str(plant / "run")
    for command in (["evaluate", run, "--episodes", "1"], ["compare", run], ["train", "--resume", run]):
        as_a_new_process(tmp_path / "elsewhere", monkeypatch)
        assert main(command) == 0, capsys.readouterr().err
    # Another module of that name lies in the current folder: the one that was named is taken.
    as_a_new_process(tmp_path / "copy", monkeypatch)
    Path("plant.py").write_text("raise SystemExit('the wrong one')")
    assert main(["evaluate", run, "--episodes", "1"]) == 0, capsys.readouterr().err


def test_a_module_that_changed_is_asked_for_from_another_folder_too(
    plant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mcetm.collect("plant:Plant", 60, processes=1).with_metadata(task=None).save("log.npz")
    assert main(["train", "log.npz", "--task", "plant:Plant", "--out", "run", *SMALL]) == 0
    with (plant / "plant.py").open("a") as file:
        file.write("# more\n")
    run = str(plant / "run")
    as_a_new_process(tmp_path / "elsewhere", monkeypatch)
    capsys.readouterr()
    assert main(["evaluate", run, "--episodes", "1"]) == 2
    said = capsys.readouterr().err
    assert "has changed since you named it; if you trust it, add --task plant:Plant." in said
    assert "plant" not in sys.modules
    assert main(["evaluate", run, "--episodes", "1", "--task", "plant:Plant"]) == 0
    # A run of somebody else's may say that its module was anywhere: only what was named is imported.
    shutil.copytree(run, "theirs")
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "plant.py").write_text("raise SystemExit('ran')")
    path = Path("theirs/environment.json")
    content = json.loads(path.read_text())
    content["measured_in"]["module_file"] = str(tmp_path / "evil" / "plant.py")
    path.write_text(json.dumps(content))
    as_a_new_process(tmp_path / "evil", monkeypatch)
    assert main(["evaluate", str(tmp_path / "elsewhere" / "theirs"), "--episodes", "1"]) == 2
    assert "that you have not named before" in capsys.readouterr().err
    assert "plant" not in sys.modules

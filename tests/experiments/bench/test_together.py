"""The list of commands on one device: order, waiting, failing, stopping."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def together() -> ModuleType:
    spec = importlib.util.spec_from_file_location("together", BENCHMARKS / "together.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["together"] = module
    spec.loader.exec_module(module)
    return module


def started(together: ModuleType, folder: Path, *lines: str, most: int = 2, seconds: float = 60.0) -> int:
    path = folder / "list.txt"
    path.write_text("\n".join(["# a comment", "", *lines]))
    return together.run(together.read(path), folder / "logs", most=most, seconds=seconds)


def test_a_command_waits_for_a_stage_of_another(together: ModuleType, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    stages = tmp_path / "seconds.json"
    later = f"{stages}:reward => echo later >> {seen}"
    first = f"echo first >> {seen}; sleep 1; echo '{{\"reward\": 1}}' > {stages}"
    assert started(together, tmp_path, later, first) == 0
    assert seen.read_text().split() == ["first", "later"]


def test_nothing_follows_a_first_command_that_fails(
    together: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    touched = tmp_path / "touched"
    assert started(together, tmp_path, "echo it is broken; exit 3", f"touch {touched}", most=1) == 2
    assert not touched.exists()
    assert "it is broken" in capsys.readouterr().out
    # One that fails later is counted, and the others go on.
    assert started(together, tmp_path, "true", "exit 3", f"touch {touched}", most=1) == 1
    assert touched.exists()


def test_time_ends_what_runs_and_who_waits_in_vain_is_not_waited_for(
    together: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(together, tmp_path, "sleep 60", f"{tmp_path}/none.json:never => true", seconds=1.0) == 2
    assert "stopped after" in capsys.readouterr().out
    saved = tmp_path / "saved"
    slow = f"sh -c 'trap \"sleep 1; touch {saved}; exit\" TERM; while true; do sleep 0.1; done'; true"
    assert started(together, tmp_path, slow, seconds=1.0) == 1
    assert saved.exists()  # it was waited for, not only its shell
    assert started(together, tmp_path, f"{tmp_path}/none.json:never => true") == 1
    assert "not started" in capsys.readouterr().out


def test_the_list_of_the_table_has_every_system_on_every_task(together: ModuleType) -> None:
    from mcetm.pipeline import algorithm_names

    jobs = together.read(BENCHMARKS / "queues" / "locomotion.txt")
    found = {tuple(job.command.split()[2::2]) for job in jobs}
    assert found == {
        (task, algo) for task in ("hopper", "halfcheetah", "walker2d") for algo in algorithm_names()
    }
    assert len(found) == len(jobs)
    chosen = together.read(BENCHMARKS / "queues" / "locomotion.txt", ["walker2d --algos iql", "edac"])
    assert [job.command.split()[2::2] for job in chosen] == [
        *([task, "edac"] for task in ("hopper", "halfcheetah", "walker2d")),
        ["walker2d", "iql"],
    ]


def test_the_list_of_the_studies_has_every_piece(
    together: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcetm.cli import main
    from mcetm_experiments.cross_dataset.settings import CrossDatasetStudy
    from mcetm_experiments.energy_error.settings import EnergyErrorStudy
    from mcetm_experiments.rollouts.settings import RolloutsStudy

    asked: list[tuple[str, ...]] = []
    pieces = {
        EnergyErrorStudy: lambda s: (s.preset, s.energy or "", *s.tasks, str(s.seed), str(s.seeds)),
        CrossDatasetStudy: lambda s: (s.preset, "cross-dataset", *s.tasks, *s.levels),
        RolloutsStudy: lambda s: (s.preset, "rollouts", *s.tasks),
    }
    for kind, piece in pieces.items():
        monkeypatch.setattr(kind, "run", lambda self, piece=piece: asked.append(piece(self)) or 0)
    for job in together.read(BENCHMARKS / "queues" / "fidelity.txt"):
        assert main(job.command.split()[1:]) == 0
        # Two programs must not train into one folder at a time.
        assert bool(job.wait) == ("study rollouts" in job.command)
    wanted = set[tuple[str, ...]]()
    for task in ("hopper", "halfcheetah", "walker2d"):
        wanted |= {("fast", "", task, seed, "1") for seed in "012"}
        levels = ("random", "medium", "medium-replay", "medium-expert")
        wanted |= {("fast", "cross-dataset", task, level) for level in levels}
        wanted.add(("fast", "rollouts", task))
    for energy in ("", "literal"):
        wanted |= {("paper", energy, task, "0", "1") for task in ("hopper", "halfcheetah")}
    assert set(asked) == wanted
    assert len(asked) == len(wanted)

"""Settings that no memory can hold are refused before anything starts; a later shortage is one sentence."""

from pathlib import Path

import jax
import pytest

import mcetm
from mcetm import UserError
from mcetm.cli import main
from mcetm.memory import is_shortage
from mcetm.pipeline.presets import make_config
from mcetm.training import sizes

PRESETS = ("quick", "fast", "paper")


@pytest.fixture(scope="module")
def log() -> mcetm.Transitions:
    return mcetm.collect("pendulum", 60, "uniform", processes=1)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_fits_a_laptop(
    preset: str, log: mcetm.Transitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "free_memory", lambda: 8 * 10**9)
    for algo in ("mcetm", "mobile", "mopo", "edac", "cql", "bc"):
        config = make_config(preset, algo=algo)
        parts = {"model": config.model, "world": config.world, "algorithm": config.algorithm}
        sizes.check_sizes(parts, log, seeds=config.seeds)


def test_what_is_counted_is_no_more_than_is_made(log: mcetm.Transitions) -> None:
    """A learner's own arrays are more than what is said of it: nothing that fits is refused."""
    algorithm = mcetm.EDAC(learner=mcetm.SAC(width=40, depth=3, critics=5))
    spaces = mcetm.agents.fit.Spaces(mcetm.Statistics.of(log), *mcetm.agents.fit.action_bounds(log))
    learner = algorithm.make_learner(spaces, key=jax.random.key(0))
    made = sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(learner) if hasattr(leaf, "nbytes"))
    need = next(need for need in sizes._needs(algorithm, "a", log, 1) if need.what == "its networks")
    assert 0.5 * made < need.bytes < made


def test_fit_says_so_too(log: mcetm.Transitions) -> None:
    with pytest.raises(
        UserError, match=r"'GaussianEnsemble.width' is 10,000,000, and with that its networks"
    ):
        mcetm.fit(mcetm.GaussianEnsemble(width=10**7), log, holdout=log)


def test_nothing_is_refused_where_nobody_knows_the_memory(
    log: mcetm.Transitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "free_memory", lambda: None)
    sizes.check_sizes({"model": mcetm.GaussianEnsemble(width=10**9)}, log)


def test_memory_that_runs_out_in_the_middle_is_one_sentence_and_leaves_nothing(
    log: mcetm.Transitions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.save(tmp_path / "log.npz")
    monkeypatch.setattr(sizes, "free_memory", lambda: None)
    command = f"train --algo bc --seeds 1 --dataset {tmp_path / 'log.npz'} --out {tmp_path / 'run'} --set"
    # XLA asks for all of the weights at once, and no machine has them.
    assert main([*command.split(), "algorithm.width=2000000", "algorithm.steps=1"]) == 2
    said = "stage 1 of 3: policy: behaviour cloning\nmcetm: There is not enough memory for this.\n"
    assert capsys.readouterr().err == said
    assert [path.name for path in tmp_path.iterdir()] == ["log.npz"]


def test_other_errors_are_no_shortage() -> None:
    assert is_shortage(MemoryError("x"))
    assert is_shortage(RuntimeError("RESOURCE_EXHAUSTED: Failed to allocate 7 bytes"))
    assert not is_shortage(RuntimeError("INVALID_ARGUMENT: x"))
    assert not is_shortage(KeyError("RESOURCE_EXHAUSTED"))


def test_a_container_has_what_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcetm import memory

    monkeypatch.setattr(memory, "_LIMITS", tmp_path)
    whole = memory.free_memory()
    assert whole is not None
    for name, text in (
        ("max", "5000\n"),
        ("current", "3000\n"),
        ("stat", "anon 10\nactive_file 500\ninactive_file 1\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.free_memory() == 5000 - 3000 + 501
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_memory() == pytest.approx(whole, rel=0.5)

"""`mcetm train` and `mcetm evaluate` as a person meets them, at a size that takes seconds."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import mcetm
from mcetm import Statistics, Transitions, UserError
from mcetm.agents import fit as agent_stage
from mcetm.agents.fit import action_bounds
from mcetm.agents.policy import numpy_policy
from mcetm.cli import main
from mcetm.dynamics import (
    REFINE,
    AnchoredEnergy,
    AnchoredETM,
    CalibrationSettings,
    EnergyTransitionModel,
    Gaussian,
    GaussianEnsemble,
    GaussianModel,
    Space,
    SupportSettings,
    WorldSettings,
)
from mcetm.files import write_json
from mcetm.nn.members import take_members
from mcetm.pipeline.config import changed, read_config
from mcetm.pipeline.finished import read_finished
from mcetm.pipeline.models import train_models
from mcetm.pipeline.presets import make_config
from mcetm.pipeline.train import _lines, run_training, start_run
from tests.pipeline.runs import small_config


def write_log(path: Path, *, task: str | None = "pendulum") -> Path:
    if task is not None:
        mcetm.collect("pendulum", 800, "uniform", processes=1).save(path)
        return path
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(401, 2)).cumsum(axis=0)
    ends = np.arange(400) % 50 == 49
    Transitions.from_arrays(
        obs[:-1], rng.uniform(-1, 1, (400, 1)), rng.normal(size=400), obs[1:], ends, np.zeros(400, bool)
    ).save(path)
    return path


def policies(folder: Path) -> dict[str, np.ndarray]:
    found = {}
    for file in sorted((folder / "policy").glob("seed-*/policy.safetensors")):
        found |= {f"{file.parent.name}/{name}": array for name, array in load_file(file).items()}
    return found


_CHILD = """
import sys
from pathlib import Path
from mcetm.pipeline.config import read_config
from mcetm.pipeline.train import run_training
folder = Path(sys.argv[1])
run_training(folder, read_config(folder / "config.json"))
"""


def test_a_run_is_complete_and_one_killed_in_its_stages_is_the_same(tmp_path: Path) -> None:
    log, folder = write_log(tmp_path / "log.hdf5"), tmp_path / "run"
    config = small_config(str(log))
    # The children compile in haste, as this process does, and share what any test compiled.
    compiler = {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "true",
        "JAX_COMPILATION_CACHE_DIR": os.environ["MCETM_TEST_PROGRAMS"],
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

    def child(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", _CHILD, str(folder)], env={**os.environ, **compiler})

    start_run(config, folder)
    with child(folder) as whole:
        assert whole.wait() == 0
    assert read_config(folder / "config.json") == config, "the settings can be read back"
    for name in ("environment.json", "metrics.jsonl", "results.json", "report.html", "seconds.json"):
        assert (folder / name).stat().st_size > 0
    found = json.loads((folder / "results.json").read_text())["algorithms"]["MC-ETM"]
    assert len(found["returns"]) == len(found["diagnosis"]["q"]) == 2
    assert "return_to_go" in found["diagnosis"]
    assert (folder / "report.html").read_text().count('src="data:image/') == 6
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20]
    assert {"q", "spread", "truncated", "rollout_length", "return"} <= set(lines[-1])
    with pytest.raises(UserError, match="other settings"):
        start_run(replace(config, seeds=5), folder)
    finished, obs = read_finished(folder), np.ones((4, 3), np.float32)
    second = numpy_policy(take_members(finished.agent.actors, 1))
    np.testing.assert_array_equal(second.mode(obs), mcetm.load_policy(folder / "policy" / "seed-1")(obs))
    assert finished.models.world.model.has_energy
    saved = mcetm.load_policy(folder / "policy" / "seed-1")
    score = finished.models.world.pair_score(obs, saved(obs))
    np.testing.assert_allclose(saved.trust(obs).score, score, rtol=1e-3, atol=1e-3)
    environment = json.loads((folder / "environment.json").read_text())
    assert saved.about["data_checksum"] == environment["dataset_checksum"]
    assert len(finished.train) + len(finished.holdout) == 800

    killed = tmp_path / "killed"
    start_run(config, killed)
    # In a model's second part, and where the policy learns; each child takes seconds to begin.
    for stage in ("models/energy", "metrics.jsonl"):
        with child(killed) as victim:
            deadline = time.monotonic() + 240
            while not (killed / stage).exists() and victim.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            victim.kill()
    with child(killed) as last:
        assert last.wait() == 0
    first, second = policies(folder), policies(killed)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def test_a_run_goes_on_elsewhere_from_its_light_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, folder = write_log(tmp_path / "log.hdf5"), tmp_path / "run"
    config = small_config(str(log), algo="mopo", seeds=1)
    start_run(config, folder)
    evaluate, calls = agent_stage.mean_returns, []

    def interrupted(*arguments: Any) -> list[float]:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(agent_stage, "mean_returns", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_training(folder, config)
    (light,) = (folder / "light").iterdir()
    assert light.name == "step-000000000010.safetensors"
    assert light.stat().st_size < 50 * 2**20
    assert not any(name.startswith("buffer") for name in load_file(light)), "experience stays behind"
    shutil.rmtree(folder / "checkpoints")
    run = run_training(folder, config)
    assert "light checkpoint at step 10, not bit for bit" in capsys.readouterr().err
    assert [line["step"] for line in run.outcomes[0].history] == [10, 20]


def test_experience_beyond_the_allowed_memory_is_refused(tmp_path: Path) -> None:
    log, folder = write_log(tmp_path / "log.hdf5"), tmp_path / "run"
    config = small_config(str(log), "algorithm.rollout.memory=1e-6", algo="mopo", seeds=1)
    start_run(config, folder)
    with pytest.raises(UserError, match=r"would take .* GB"):
        run_training(folder, config)


def test_single_settings_can_be_changed() -> None:
    config: Any = changed(
        make_config("quick"), ["algorithm.penalty=2", "model.inference=null", "label=mine", "baselines=[]"]
    )
    assert (config.algorithm.penalty, config.model.inference, config.label) == (2.0, None, "mine")
    assert config.baselines == ()
    for change, words in (
        ("algorithm.penalt=2", "no setting 'algorithm.penalt'; did you mean 'algorithm.penalty'?"),
        ("algorithm.penalty.x=2", "no setting 'algorithm.penalty.x': 'algorithm.penalty' has no parts"),
        ("algorithm.penalty", "changes nothing"),
        ("algorithm.penalty=much", "'algorithm.penalty' should be a valid number, not 'much'"),
        ("algorithm=5", "'algorithm' should be settings with a name"),
        ("algorithm.name=mopoo", "Unknown algorithm 'mopoo'; did you mean 'mopo'?"),
        ("algorithm.learner.width=8.5", "width' should be a valid integer, not 8.5"),
        ("baselines=3", "'baselines' should be a list of settings"),
        ("baselines.0.label=x", "no setting 'baselines.0.label': 'baselines.0' has no parts"),
        ("baselines.0={}", "no setting 'baselines.0': 'baselines' has 0 parts"),
        ("model=null", "'model' is missing: MC-ETM learns in a model of the world"),
    ):
        with pytest.raises(UserError) as refused:
            changed(config, [change])
        assert words in str(refused.value)


def test_settings_of_baselines_are_changed_by_number() -> None:
    config: Any = changed(make_config("quick"), ["baselines.1.algorithm.penalty=2", "baselines.0.label=BC"])
    assert (config.baselines[1].algorithm.penalty, config.baselines[0].label) == (2.0, "BC")
    for change, words in (
        ("baselines.1.algorithm.penalt=2", "no setting 'baselines.1.algorithm.penalt'; did you mean"),
        ("baselines.9.label=x", "'baselines.9' has no parts"),
        ("baselines.-1.label=x", "'baselines.-1' has no parts"),
        ("baselines.²=x", "'baselines' has 3 parts"),
    ):
        with pytest.raises(UserError) as refused:
            changed(config, [change])
        assert words in str(refused.value)


def test_the_quick_table_names_what_it_compares() -> None:
    lines = _lines(make_config("quick"))
    names = [line.label for line in lines]
    assert names == ["behaviour cloning", "MOBILE", "MC-ETM without truncation and penalty", "MC-ETM"]
    assert [line.part for line in lines] == [None, "regressor", None, None]
    ablated: Any = lines[2].algorithm
    assert replace(ablated, truncate=True, penalty=1.0) == lines[3].algorithm, "nothing else differs"
    assert [line.label for line in _lines(make_config("quick", algo="mopo"))] == ["MOPO"]


def test_a_log_without_a_task_trains_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log.npz", task=None)
    monkeypatch.setattr(
        "mcetm.pipeline.presets.make_config",
        lambda preset, **o: small_config(o["dataset"], algo=o["algo"], seeds=1),
    )
    out = tmp_path / "run"
    assert main(["train", "--dataset", str(log), "--algo", "mopo", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Returns were not measured" in said
    assert "worth knowing: only 400 transitions" in said
    assert "┃" not in said, "there is no table of nothing"
    report = (out / "report.html").read_text()
    assert "Not measured: there was no environment" in report
    assert "<h2>Returns</h2>" not in report, "there is no table of nothing either"
    assert "<li>only 400 transitions" in report
    assert (out / "models" / "termination").is_dir(), "ends are learned where there is no rule"
    assert not (out / "models" / "energy").exists(), "MOPO needs no energy"
    action = mcetm.load_policy(out)(np.zeros(2))
    assert action.shape == (1,)
    assert main(["evaluate", str(out)]) == 2
    assert "name one with --task" in capsys.readouterr().err
    found = mcetm.load_run(out)
    (policy,) = found.policies
    assert policy.trust(found.log.obs[:50]).trusted.mean() > 0.5
    assert not policy.trust(np.full(2, 1e4)).trusted, "its world says where to trust it"
    with pytest.raises(UserError, match="observation is not finite"):
        policy.trust(np.full(2, np.nan))
    assert main(["export", str(out), "--part", "dynamics", "--out", str(tmp_path / "model.onnx")]) == 0
    model = pytest.importorskip("onnx").load(tmp_path / "model.onnx")
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert told["data_checksum"] == found.log.checksum
    scale = mcetm.Statistics.of(found.log.split(found.settings.holdout, seed=0)[0]).obs
    np.testing.assert_allclose(json.loads(told["obs_std"]), scale.std, rtol=1e-6)


def test_without_an_environment_only_what_was_asked_for_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = []
    monkeypatch.setattr(
        "mcetm.pipeline.train.train_run", lambda config, *_, **__: begun.append(config) or 1 / 0
    )
    log = str(write_log(tmp_path / "log.npz", task=None))
    for more in ([], ["--task", "pendulum"], ["--set", "baselines.0.algorithm.steps=5"]):
        path = log if not more or more[0] == "--set" else str(write_log(tmp_path / "with.npz"))
        with pytest.raises(ZeroDivisionError):
            main(["train", path, *more, "--out", str(tmp_path / "run")])
    assert [len(config.baselines) for config in begun] == [0, 3, 3]
    assert "only MC-ETM is trained: others are compared by their returns" in capsys.readouterr().out


def test_bad_requests_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    (tmp_path / "begun" / "models" / "energy").mkdir(parents=True)
    for arguments, words in (
        (["train", "--resume", str(tmp_path)], "is not a run"),
        (["train", "--out", str(tmp_path / "full")], "is not empty and not a run"),
        (["evaluate", str(tmp_path)], "holds no policy"),
        (["evaluate", str(tmp_path), "--episodes", "0"], "at least 1"),
        (["train", "--models", str(tmp_path)], "holds no models"),
        (["train", "--set", f"models_from={tmp_path}"], "holds no models"),
        (
            ["train", "--models", str(tmp_path / "begun")],
            "are not finished; go on with: mcetm train --resume",
        ),
        (["train", "--resume", str(tmp_path / "full" / "file")], "is not a run"),
        (["train", "--out", str(tmp_path / "full" / "file")], "not a run"),
        (["train", "--dataset", "pendulum-mixd", "--out", str(tmp_path / "new")], "Unknown dataset"),
    ):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "not the configuration"),
        ("{", "not the configuration"),
        ('{"algo": "foo"}', r"written by another version of mcetm \(format 1, here 2\)"),
        ('{"format": 3}', r"written by another version of mcetm \(format 3, here 2\)"),
        ('{"format": 2}', "'algorithm' should be settings with a name"),
        ('{"format": 2, "algorithm": {"name": "foo"}}', "Unknown algorithm 'foo'"),
        ('{"format": 2, "algorithm": {"name": "bc"}}', "The setting 'label' is missing"),
        ('{"format": 2, "algorithm": {"name": "bc"}, "label": "x", "seeds": "3"}', "'seeds' .*not '3'"),
        ('{"format": 2, "algorithm": {"name": "bc"}, "label": "x", "sped": 3}', "no setting 'sped'"),
        ('{"format": 2, "algorithm": {"name": "bc"}, "label": "x", "world": []}', "The setting 'world'"),
        ('{"format": 2, "algorithm": {"name": "bc"}, "model": []}', "'model' should be settings"),
    ],
)
def test_a_configuration_that_is_none_is_refused(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError, match=words) as refused:
        read_config(tmp_path / "config.json")
    assert str(tmp_path / "config.json") in str(refused.value)


def test_a_run_is_resumed_with_its_own_settings_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, run = write_log(tmp_path / "log.npz", task=None), str(tmp_path / "run")
    begun = small_config(str(log), algo="bc", seeds=1)
    start_run(begun, Path(run))
    before = sorted(tmp_path.rglob("*"))
    for options, words in (
        (["--steps", "30"], f"{run} was begun for 20 updates"),
        (["--steps", "30"], f"begin a new run with its models: mcetm train --models {run} --steps 30 --out"),
        (["--seeds", "5"], "--seeds cannot go with --resume: the run's own settings hold."),
        (["--algo", "mopo"], "--algo cannot go with --resume"),
        (["--set", "algorithm.width=9"], "--set cannot go with --resume"),
        (["--preset", "fast"], "--preset cannot go with --resume"),
        (["--dataset", "other.npz"], "There is no file other.npz."),
        (["--out", "elsewhere"], "--out cannot go with --resume"),
    ):
        assert main(["train", "--resume", run, *options]) == 2
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["train", "--resume", run, "--steps", "20"]) == 0, "the same number is no change"
    assert mcetm.load_policy(run).about["updates"] == 20


def test_a_run_of_an_older_format_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "config.json").write_text(json.dumps({"algo": "mcetm", "policy": {"penalty": 1.0}}))
    for command in ("--resume", "--out"):
        assert main(["train", command, str(old)]) == 2
        said = capsys.readouterr().err
        assert f"{old / 'config.json'} was written by another version of mcetm (format 1, here 2)" in said
        assert said.count("\n") == 1
    assert [path.name for path in old.iterdir()] == ["config.json"]


def test_an_earlier_runs_models_are_read_from_there_and_missing_ones_trained_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Transitions.load(write_log(tmp_path / "a.npz", task=None))
    log = replace(log, terminated=log.truncated, truncated=log.terminated)  # nothing ends by itself
    made = lambda k: Gaussian(GaussianEnsemble(width=4, depth=1), Statistics.of(log), key=k)  # noqa: E731
    regressor = GaussianModel(eqx.filter_vmap(made)(jax.random.split(jax.random.key(0), 1)), jnp.array([0]))
    here, there = tmp_path / "B" / "models", tmp_path / "A" / "models"
    for part in ("regressor", "reward"):
        (there / part).mkdir(parents=True)
    # A stage that is over stands there under its own name; one that was killed does not.
    write_json(there.parent / "seconds.json", {"regressor": 1.0, "reward, interrupted": 1.0})
    folders = {}

    def fake(name: str, result: object) -> Callable[..., tuple[object, list[object]]]:
        def fit(*_: object, folder: Path, **__: object) -> tuple[object, list[object]]:
            folders[name] = folder
            return result, []

        return fit

    monkeypatch.setattr("mcetm.dynamics.gaussian.fit_gaussian", fake("regressor", regressor))
    monkeypatch.setattr("mcetm.dynamics.world.fit_reward", fake("reward", no_reward))
    monkeypatch.setattr(
        "mcetm.pipeline.models.earlier_models", lambda config: [tmp_path / "C" / "models", there]
    )
    config = changed(small_config(algo="mopo"), ["world.termination=none"])
    train_models(config, log, log, None, folder=here)
    assert folders == {"regressor": there / "regressor", "reward": here / "reward"}
    assert (
        capsys.readouterr().out == f"{there / 'reward'} is not finished, so this part is trained anew here.\n"
    )
    (here / "regressor").mkdir(parents=True)
    (here / "reward").mkdir()
    train_models(config, log, log, None, folder=here)
    assert folders == {"regressor": here / "regressor", "reward": here / "reward"}, "what was begun goes on"
    assert capsys.readouterr().out == ""


def no_reward(obs: Any, action: Any, next_obs: Any) -> Any:
    return jnp.zeros(())


def untrained(log: Transitions) -> tuple[GaussianModel, EnergyTransitionModel]:
    """A regressor of two members, and energies anchored in it."""
    config, statistics = GaussianEnsemble(width=8, depth=1), Statistics.of(log)
    keys = jax.random.split(jax.random.key(0), 2)
    gaussians = eqx.filter_vmap(lambda k: Gaussian(config, statistics, key=k))(keys)
    anchored = eqx.filter_vmap(lambda anchor, k: AnchoredEnergy(anchor, width=8, depth=1, key=k))
    energy = EnergyTransitionModel(anchored(gaussians, keys), Space.of(log, "change"), config=REFINE)
    return GaussianModel(gaussians, jnp.arange(2)), energy


def test_a_support_raises_the_level_that_thresholds_are_set_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = mcetm.collect("pendulum", 400, "uniform", processes=1)
    regressor, energy = untrained(log)
    for place, model in (
        ("energy_models.fit_gaussian", regressor),
        ("energy_models.fit_energy", energy),
        ("world.fit_reward", no_reward),
    ):
        monkeypatch.setattr(f"mcetm.dynamics.{place}", lambda *_, model=model, **__: (model, []))
    support = SupportSettings(width=8, depth=1, batch_size=16, steps=20)
    world = WorldSettings(termination="none", pairs=None, calibration=CalibrationSettings(samples=2, rows=50))
    bare, raised = (
        train_models(
            replace(make_config("quick"), model=AnchoredETM(support=choice), world=world),
            log,
            log,
            None,
            folder=tmp_path,
        ).deltas
        for choice in (None, support)
    )
    assert (tmp_path / "support").is_dir()
    assert bare is not None
    assert raised is not None
    assert np.abs(raised - bare).min() > 0.01


def test_an_action_that_never_varies_has_room() -> None:
    rows = np.zeros((20, 1))
    log = Transitions.from_arrays(
        rows, np.zeros((20, 2)), np.zeros(20), rows, np.zeros(20, bool), rows[:, 0] == 0
    )
    low, high = action_bounds(log)
    assert bool((high > low).all())

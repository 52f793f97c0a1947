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
from mcetm.agents.bc import BCConfig
from mcetm.agents.policy import numpy_policy
from mcetm.agents.rollout import RolloutConfig
from mcetm.agents.sac import SAC
from mcetm.cli import main
from mcetm.dynamics import (
    ANCHORED,
    AutoencoderConfig,
    CalibrationConfig,
    EnergyConfig,
    Gaussian,
    GaussianConfig,
    GaussianEnsemble,
    HeadConfig,
    InferenceConfig,
    Langevin,
    SupportConfig,
)
from mcetm.nn.members import take_members
from mcetm.pipeline import policy as policy_stage
from mcetm.pipeline.config import (
    ModelsConfig,
    PolicyConfig,
    TrainConfig,
    changed,
    from_plain,
    read_config,
    to_plain,
)
from mcetm.pipeline.finished import read_finished
from mcetm.pipeline.models import train_models
from mcetm.pipeline.presets import PRESETS, make_config
from mcetm.pipeline.train import _lines, action_bounds, run_training, start_run
from tests.experiments.subjects import untrained

CHAIN = Langevin(steps=2)


def tiny(dataset: str, **changes: object) -> TrainConfig:
    models = ModelsConfig(
        gaussian=GaussianConfig(members=2, elites=2, width=8, depth=1, steps=30, batch_size=16),
        autoencoder=AutoencoderConfig(latent_dim=2, width=8, depth=1, steps=30, batch_size=16),
        energy=EnergyConfig(
            members=2, count=2, width=8, depth=1, batch_size=8, steps=20, latent=CHAIN, ambient=CHAIN
        ),
        inference=InferenceConfig(latent=CHAIN, ambient=CHAIN),
        calibration=CalibrationConfig(samples=2, rows=50, batch_size=50),
        reward=HeadConfig(width=8, depth=1, steps=30, batch_size=16),
    )
    policy = PolicyConfig(
        samples=2,
        sac=SAC(width=8, batch_size=16, steps=20),
        rollout=RolloutConfig(batch=8, horizon=2, every=10, retain=2, parallel=8),
        bc=BCConfig(width=8, batch_size=16, steps=20),
        evaluate_every=10,
        episodes=2,
    )
    config = TrainConfig(dataset=dataset, seeds=2, models=models, policy=policy)
    return replace(config, **changes)


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
    config = tiny(str(log))
    # The children compile in haste, as this process does, and share it: only the first pays for it.
    compiler = {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "true",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
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
    assert (folder / "report.html").read_text().count("data:image/png") == 3
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20]
    assert {"q", "spread", "truncated", "rollout_length", "return"} <= set(lines[-1])
    with pytest.raises(UserError, match="other settings"):
        start_run(replace(config, seeds=5), folder)
    finished, obs = read_finished(folder), np.ones((4, 3), np.float32)
    second = numpy_policy(take_members(finished.learners.actor, 1))
    np.testing.assert_array_equal(second.mode(obs), mcetm.load_policy(folder / "policy" / "seed-1")(obs))
    assert finished.models.energy is not None
    assert len(finished.train) + len(finished.holdout) == 800

    killed = tmp_path / "killed"
    start_run(config, killed)
    for stage in ("models/regressor", "models/energy", "metrics.jsonl"):
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
    config = tiny(str(log), algo="mopo", seeds=1)
    start_run(config, folder)
    evaluate, calls = policy_stage.mean_returns, []

    def interrupted(*arguments: Any) -> list[float]:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(policy_stage, "mean_returns", interrupted)
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
    config = changed(tiny(str(log), algo="mopo", seeds=1), ["policy.rollout.memory=1e-6"])
    start_run(config, folder)
    with pytest.raises(UserError, match=r"would take .* GB"):
        run_training(folder, config)


def test_single_settings_can_be_changed() -> None:
    config = changed(make_config("quick"), ["policy.penalty=2", "models.inference=null", "algo=mopo"])
    assert (config.policy.penalty, config.models.inference, config.algo) == (2, None, "mopo")
    for change, words in (
        ("policy.penalt=2", "no setting 'policy.penalt'"),
        ("policy.penalty.x=2", "no setting"),
        ("penalty", "no setting"),
        ("policy.penalty=much", "'much' is not a possible value"),
    ):
        with pytest.raises(UserError, match=words):
            changed(config, [change])


def test_the_quick_table_names_what_it_compares() -> None:
    names = [name for name, _, _ in _lines(make_config("quick"))]
    assert names == ["behaviour cloning", "MOBILE", "MC-ETM without truncation and penalty", "MC-ETM"]
    assert [name for name, _, _ in _lines(make_config("quick", algo="mopo"))] == ["MOPO"]


def test_a_log_without_a_task_trains_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log.npz", task=None)
    monkeypatch.setattr(
        "mcetm.pipeline.presets.make_config",
        lambda preset, **o: tiny(o["dataset"], algo=o["algo"], seeds=1),
    )
    out = tmp_path / "run"
    assert main(["train", "--dataset", str(log), "--algo", "mopo", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Returns were not measured" in said
    assert "not measured" in (out / "report.html").read_text()
    assert (out / "models" / "termination").is_dir(), "ends are learned where there is no rule"
    assert not (out / "models" / "energy").exists(), "MOPO needs no energy"
    action = mcetm.load_policy(out)(np.zeros(2))
    assert action.shape == (1,)
    assert main(["evaluate", str(out)]) == 2
    assert "name one with --task" in capsys.readouterr().err


def test_bad_requests_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    for arguments, words in (
        (["train", "--seeds", "0"], "--seeds must be at least 1"),
        (["train", "--resume", str(tmp_path)], "is not a run"),
        (["train", "--out", str(tmp_path / "full")], "is not empty and not a run"),
        (["evaluate", str(tmp_path)], "holds no policy"),
        (["evaluate", str(tmp_path), "--episodes", "0"], "at least 1"),
        (["train", "--seed", "-1"], "--seed must lie between"),
        (["train", "--set", "policy.lambda=1"], "no setting 'policy.lambda'"),
        (["train", "--models", str(tmp_path)], "holds no models"),
        (["train", "--resume", str(tmp_path / "full" / "file")], "is not a run"),
        (["train", "--out", str(tmp_path / "full" / "file")], "not a run"),
        (["train", "--dataset", "pendulum-mixd", "--out", str(tmp_path / "new")], "Unknown dataset"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "settings are expected"),
        ("{", "not the configuration"),
        ('{"algo": "foo"}', "'foo' is not a possible value"),
        ('{"seeds": "3"}', "'3' is not a possible value"),
        ('{"speed": 3}', "unknown setting 'speed'"),
        ('{"models": []}', "settings|possible value"),
    ],
)
def test_a_configuration_that_is_none_is_refused(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError, match=words):
        read_config(tmp_path / "config.json")


def test_an_earlier_runs_models_are_read_from_there_and_missing_ones_trained_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Transitions.load(write_log(tmp_path / "a.npz", task=None))
    made = lambda k: Gaussian(GaussianConfig(width=4, depth=1), Statistics.of(log), key=k)  # noqa: E731
    regressor = GaussianEnsemble(
        eqx.filter_vmap(made)(jax.random.split(jax.random.key(0), 1)), jnp.array([0])
    )
    here, there = tmp_path / "B" / "models", tmp_path / "A" / "models"
    (there / "regressor").mkdir(parents=True)
    folders = {}

    def fake(name: str, result: object) -> Callable[..., tuple[object, list[object]]]:
        def fit(*_: object, folder: Path, **__: object) -> tuple[object, list[object]]:
            folders[name] = folder
            return result, []

        return fit

    monkeypatch.setattr("mcetm.pipeline.models.fit_gaussian", fake("regressor", regressor))
    monkeypatch.setattr("mcetm.pipeline.models.fit_reward", fake("reward", None))
    config = replace(ModelsConfig(), termination="none")
    key = jax.random.key(0)
    train_models(
        log, log, config, None, needs=(), key=key, folder=here, earlier=[tmp_path / "C" / "models", there]
    )
    assert folders == {"regressor": there / "regressor", "reward": here / "reward"}


def test_a_support_raises_the_level_that_thresholds_are_set_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = mcetm.collect("pendulum", 400, "uniform", processes=1)
    regressor, energy, _ = untrained(log)
    for name, model in (("gaussian", regressor), ("reward", None), ("energy", energy)):
        monkeypatch.setattr(f"mcetm.pipeline.models.fit_{name}", lambda *_, model=model, **__: (model, []))
    support = SupportConfig(width=8, depth=1, batch_size=16, steps=20)
    config = replace(
        ModelsConfig(),
        termination="none",
        energy=ANCHORED,
        calibration=CalibrationConfig(samples=2, rows=50),
    )
    models = [
        train_models(
            log,
            log,
            replace(config, support=choice),
            None,
            needs=("energy",),
            key=jax.random.key(0),
            folder=tmp_path,
        )
        for choice in (None, support)
    ]
    assert (tmp_path / "support").is_dir()
    bare, raised = (found.deltas for found in models)
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


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("algo", ["mcetm", "mobile", "mopo", "bc"])
def test_every_preset_survives_being_written_and_read(preset: str, algo: str) -> None:
    config = make_config(preset, dataset="hopper-medium", algo=algo)  # pyright: ignore[reportArgumentType]
    assert from_plain(TrainConfig, to_plain(config)) == config


def test_published_settings_reach_their_algorithms() -> None:
    paper = make_config("paper", dataset="d4rl:hopper-medium-v2")
    assert (paper.policy.penalty, paper.models.calibration.absolute) == (1.5, -5.0)
    assert (paper.policy.value_floor, paper.policy.sac.steps) == (0.0, 3_000_000)
    assert paper.models.autoencoder.latent_dim == 5
    mobile = make_config("paper", dataset="walker2d-medium-replay", algo="mobile")
    assert (mobile.policy.penalty, mobile.policy.rollout.horizon) == (0.5, 1)
    ours = make_config("fast", dataset="walker2d-medium-replay").policy.rollout
    for algo in ("mobile", "mopo"):
        theirs = make_config("fast", dataset="walker2d-medium-replay", algo=algo).policy.rollout
        assert theirs == ours, "fast imagines alike for all three"
    assert (
        make_config("fast", dataset="data/hopper_medium-v2.hdf5", algo="mobile").policy.sac.temperature == 0.2
    )
    literal, ours = (
        make_config(preset, dataset="walker2d-medium", algo="mopo").policy for preset in ("paper", "fast")
    )
    assert (literal.penalty, literal.rollout.horizon) == (0.5, 5)
    assert (ours.penalty, ours.rollout.horizon) == (2.5, 20)
    morel, mcetm = (make_config("fast", algo=algo).models.calibration.quantile for algo in ("morel", "mcetm"))
    assert (morel, mcetm) == (0.999, 0.9999)
    expert = make_config("fast", dataset="halfcheetah-medium-expert", algo="mobile")
    assert expert.policy.rollout.real_share == 0.5
    with pytest.raises(UserError, match="Unknown preset"):
        make_config("slow")


@pytest.mark.thorough
def test_mcetm_beats_the_data_and_cloning_on_the_pendulum(tmp_path: Path) -> None:
    """The main job at a smaller size: the margin is hundreds, the spread over seeds is tens."""
    quick = make_config("quick", seeds=1)
    policy = replace(quick.policy, sac=replace(quick.policy.sac, steps=3500), evaluate_every=3500, episodes=5)
    config = replace(quick, policy=policy, compare=False)
    run = run_training(tmp_path, config)
    cloned = run_training(tmp_path / "bc", replace(config, algo="bc"))
    assert run.outcomes[0].returns is not None
    assert cloned.outcomes[0].returns is not None
    assert run.outcomes[0].returns[0] > run.data_return + 300
    assert run.outcomes[0].returns[0] > cloned.outcomes[0].returns[0] + 300

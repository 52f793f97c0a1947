"""Any transition model works under any algorithm, ours and a user's own of ten lines."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import mcetm
from mcetm import Statistics, Transitions, UserError
from mcetm.agents import ALGORITHMS, RAMBO
from mcetm.agents.agent import learn, make_agent, refresh
from mcetm.agents.fit import action_bounds
from mcetm.agents.learner import Spaces
from mcetm.cli import main
from mcetm.dynamics import World
from mcetm.pipeline.config import model_names, name_of, read_config
from mcetm.pipeline.models import train_models
from mcetm.pipeline.presets import make_config
from mcetm.pipeline.train import start_run
from mcetm.tasks.own import remember
from mcetm.training.batches import Batch
from tests.agents import test_agents as known
from tests.pipeline.runs import small_config, small_settings

ALGOS = [name_of(kind) for kind in ALGORITHMS if kind.model_based and kind is not RAMBO]
"""RAMBO, which trains its model, has a test of its own."""
WITHOUT_ENERGIES = ("gaussian", "diffusion", "toy:Drift")

TOY = """
import jax
import mcetm.settings
from mcetm import Samples, TransitionModel

class Drift(TransitionModel):
    noise: float = 0.1

    @property
    def num_members(self):
        return 2

    def draw(self, obs, action, count, *, key):
        return Samples(obs + self.noise * jax.random.normal(key, (2, count, obs.shape[-1])))

class Named(Drift):
    name: str = "nobody"

@mcetm.settings.settings
class Wider(mcetm.GaussianEnsemble):
    width: mcetm.settings.Positive = 9
"""


def small_log() -> Transitions:
    """Eight episodes of a random walk."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(401, 2)).cumsum(axis=0)
    ends = np.arange(400) % 50 == 49
    action, reward = rng.uniform(-1, 1, (400, 1)), rng.normal(size=400)
    return Transitions.from_arrays(obs[:-1], action, reward, obs[1:], np.zeros(400, bool), ends)


@pytest.fixture
def here(marker: Path) -> Path:
    """The current folder, with a log and a model of one's own."""
    small_log().save("log.npz")
    Path("toy.py").write_text(TOY)
    return Path.cwd()


def one_update(algorithm: Any, world: World, log: Transitions) -> dict[str, Any]:
    """Metrics of a generation and of an update of one seed."""
    data, algorithm = Batch.of(log), algorithm.on(log)
    learner = algorithm.make_learner(Spaces(Statistics.of(log), *action_bounds(log)), key=jax.random.key(0))
    agent = make_agent(learner, world, data, algorithm, key=jax.random.key(1))
    agent, imagined = refresh(agent, (data, world), algorithm)
    agent, learned = learn(agent, (data, None), algorithm)
    return {**imagined, **learned, "done": agent.learner.done}


def assert_finite(found: Any) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(found):
        assert np.isfinite(leaf).all(), jax.tree_util.keystr(path)


@pytest.mark.parametrize("model", [*model_names(), "toy:Drift"])
def test_every_algorithm_imagines_in_a_trained_model(
    here: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an algorithm asks of a model is a step, seen in its own way; all go on with it alike."""
    log = small_log()
    monkeypatch.setattr("mcetm.dynamics.world.fit_reward", lambda *_, **__: (known.reward, []))
    config = small_config("log.npz", "world.termination=none", algo="mcetm", model=model)
    train, holdout = log.split(0.25, seed=0)
    world = train_models(config, train, holdout, None, folder=here / "models").world
    assert world.trust is not None
    assert (world.trust.next_state is None) == (model in WITHOUT_ENERGIES), "energies where there are some"
    assert float(world.trust.pair_limit) > 0.0, "and disagreement for every model"

    algorithms = {}
    for algo in ALGOS:
        if algo == "empo" and model in WITHOUT_ENERGIES:
            with pytest.raises(UserError, match=f"EMPO needs a model with energies.*'{model}' has none"):
                make_config("quick", algo=algo, model=model)
            continue
        algorithms[algo] = small_config("log.npz", algo=algo, model=model).algorithm
    eqx.filter_eval_shape(lambda: one_update(algorithms["mcetm"], world, log))

    def imagined(obs: jax.Array, action: jax.Array, key: jax.Array) -> dict[str, Any]:
        return {name: world.imagine(obs, action, a.view, key=key) for name, a in algorithms.items()}

    data, keys = Batch.of(log), jax.random.split(jax.random.key(2), 8)
    assert_finite(eqx.filter_jit(jax.vmap(imagined))(data.obs[:8], data.action[:8], keys))


@pytest.mark.parametrize("algo", ALGOS)
def test_an_algorithm_updates_on_what_it_imagined(algo: str) -> None:
    """An update reads rows, not the model that drew them: one model with energies stands for all."""
    update = eqx.filter_jit(lambda: one_update(small_config(algo=algo).algorithm, known.world(), known.LOG))
    found = update()
    assert_finite(found)
    assert float(found["done"]) == 1.0


@pytest.mark.parametrize(("algo", "model"), [("rambo", "gaussian"), ("morel", "toy:Drift")])
def test_a_command_trains_a_pair_and_another_shares_its_models(here: Path, algo: str, model: str) -> None:
    def train(algo: str, out: str, *more: str) -> None:
        settings = small_settings(make_config("quick", algo=algo, model=model))
        arguments = f"--dataset log.npz --algo {algo} --model {model} --steps 4 --seeds 1 --out {out}"
        kept = [setting for setting in settings if not setting.startswith("algorithm.learner.steps")]
        assert main(["train", *arguments.split(), *more, "--set", *kept, "algorithm.rollout.every=2"]) == 0

    train(algo, "first")
    train("mopo", "second", "--models", "first")
    assert not Path("second/models").exists(), "all parts come from the first run"
    for folder, name in (("first", algo), ("second", "mopo")):
        written = json.loads((here / folder / "config.json").read_text())
        assert (written["model"]["name"], written["algorithm"]["name"]) == (model, name)
        history = [json.loads(line) for line in (here / folder / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in history] == [2, 4]
        assert mcetm.load_policy(here / folder)(np.zeros(2)).shape == (1,)


@pytest.mark.parametrize(
    ("algo", "model", "words"),
    [
        ("empo", "gaussian", "EMPO needs a model with energies"),
        ("empo-official", "toy:Drift", "EMPO needs a model with energies"),
        ("bc", "gaussian", "behaviour cloning learns from the log alone; it takes no --model."),
        ("mopo", "gausian", "Unknown model 'gausian'; did you mean 'gaussian'?"),
        ("mopo", "toy:Drft", "There is no class 'Drft' in the module 'toy'."),
        ("mopo", "helper:mcetm", "There is no class 'mcetm'"),
        ("mopo", "json:JSONDecoder", "neither a TransitionModel nor the settings of one"),
    ],
)
def test_a_model_that_cannot_serve_is_refused_before_anything_starts(
    here: Path, algo: str, model: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--dataset", "log.npz", "--algo", algo, "--model", model, "--out", "run"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not Path("run").exists()


def test_rambo_refuses_a_model_without_a_density(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--dataset log.npz --algo rambo --model toy:Drift --out run"
    assert main(["train", *arguments.split()]) == 2
    sentence = "it needs the Gaussian ensemble, not 'toy:Drift'.\n"
    assert capsys.readouterr().err.endswith(sentence)
    assert not Path("run").exists()


def test_settings_of_a_model_of_ones_own_are_settings_as_others(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small_config("log.npz", "model.noise=0.5", algo="mopo", model="toy:Drift")
    assert config.model.noise == 0.5
    assert main(["train", "--algo", "mopo", "--model", "toy:Drift", "--set", "model.nois=2"]) == 2
    assert "nois" in capsys.readouterr().err
    assert not Path("runs").exists()


@pytest.mark.parametrize("model", ["toy:Named", "toy:Wider"])
def test_settings_of_ones_own_with_a_name_are_read_back(here: Path, model: str) -> None:
    config = small_config("log.npz", algo="mopo", model=model)
    remember(model)
    start_run(config, Path("run"))
    assert json.loads(Path("run/config.json").read_text())["model"]["name"] == model
    assert read_config(Path("run/config.json")).model == config.model


def test_a_name_that_could_not_be_read_back_is_refused(here: Path) -> None:
    config = small_config("log.npz", algo="mopo", model="toy:Named")
    other = replace(config, model=replace(config.model, name="somebody"))
    with pytest.raises(UserError, match="'toy:Named' has a setting called 'name', which"):
        start_run(other, Path("run"))


def test_a_run_with_a_model_of_ones_own_runs_no_code_that_was_not_named(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_run(small_config("log.npz", algo="mopo", model="toy:Drift"), Path("run"))
    assert main(["train", "--resume", "run"]) == 2
    assert capsys.readouterr().err.endswith("if you trust it, add --model toy:Drift.\n")

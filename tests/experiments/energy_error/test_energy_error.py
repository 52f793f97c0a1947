"""The energy-error study: the whole of it at a small size, on fresh models and on a finished run's."""

import json
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mcetm
from mcetm import Statistics, Transitions, UserError
from mcetm.agents import BC, SAC, Agent, SACLearner
from mcetm.agents.learner import Spaces
from mcetm.cli import main
from mcetm.dynamics import (
    ANCHORED,
    PAPER,
    PAPER_EMPO,
    REFINE,
    CalibrationSettings,
    GaussianEnsemble,
    InferenceSettings,
    Langevin,
    ModelSettings,
    SupportSettings,
    TrustRegion,
    World,
)
from mcetm.files import write_json
from mcetm.nn import take_members
from mcetm.pipeline import Finished, make_config
from mcetm.pipeline.models import Models
from mcetm.pipeline.train import start_run
from mcetm.tasks import Recipe, RecipePart, get_task
from mcetm_experiments.energy_error import ladder, study
from mcetm_experiments.energy_error.distrust import SCORES, SPREADS, Subject
from mcetm_experiments.energy_error.presets import PRESETS, EnergyErrorConfig, with_energy
from mcetm_experiments.energy_error.settings import EnergyErrorStudy
from mcetm_experiments.energy_error.study import run_energy_error
from mcetm_experiments.energy_error.value import ValueConfig
from mcetm_experiments.shared import baselines
from mcetm_experiments.shared.models import FULL_AUTOENCODER, FULL_GAUSSIAN, ModelsConfig
from tests.experiments.drawn import words_in
from tests.experiments.energy_error.test_distrust import FirstComponent
from tests.experiments.subjects import untrained

RUNGS = 1 + len(ladder.STATE_NOISE) + len(ladder.ACTION_NOISE) + 1 + len(ladder.DEPTHS)
CHAIN = Langevin(steps=2)


def tiny_models() -> ModelsConfig:
    sizes = {"members": 2, "count": 2, "width": 8, "depth": 1, "batch_size": 8, "steps": 10}
    return ModelsConfig(
        gaussian=GaussianEnsemble(members=2, elites=2, width=8, depth=1, steps=20, batch_size=16),
        energy=replace(ANCHORED, **sizes),
        inference=replace(REFINE, ambient=CHAIN),
        support=SupportSettings(width=8, depth=1, batch_size=16, steps=20),
        calibration=CalibrationSettings(samples=2, rows=50, batch_size=50),
    )


class Lonely(ModelSettings):
    """The settings of a user's own model with energies, of which nothing else is known."""

    has_energy = True


def _unrewarded(obs: object, action: object, next_obs: object) -> float:
    return 0.0


def tiny(dataset: str) -> EnergyErrorConfig:
    value = ValueConfig(BC(width=8, batch_size=16, steps=10), width=8, batch_size=16, steps=10)
    sizes = {"transitions": 600, "rows": 30, "samples": 2, "neighbours": 50, "batch_size": 30, "shown": 100}
    return EnergyErrorConfig(tiny_models(), value, seeds=1, holdout=0.3, **sizes)


@pytest.fixture(autouse=True)
def _uniform_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two levels that need no weights."""
    recipes = {
        f"hopper-{level}": Recipe(f"hopper-{level}", "hopper", 600, (RecipePart(("uniform",)),))
        for level in ("medium", "random")
    }
    monkeypatch.setattr(ladder, "RECIPES", recipes)
    monkeypatch.setattr(study, "RECIPES", recipes)
    monkeypatch.setitem(PRESETS, "quick", tiny)


def test_the_study_writes_what_it_found_and_goes_on_after_finished_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unasked(*_: object, **__: object) -> None:
        raise AssertionError("an anchored energy needs no autoencoder")

    monkeypatch.setattr(baselines, "fit_autoencoder", unasked)
    assert main(["study", "energy-error", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "hopper-medium: AUROC" in said
    results = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)
    found = results["datasets"]["hopper-medium"]
    names = [rung["name"] for rung in found["rungs"]]
    assert len(names) == RUNGS
    assert (names[0], names[-1]) == ("held out", "rollout 50")
    assert "level random" in names
    for name in SCORES:
        numbers = found["scores"][name]
        assert np.shape(numbers["auroc"]["mean"]) == np.shape(numbers["pearson"]["mean"]) == (RUNGS,)
        assert numbers["auroc"]["mean"][0] == 0.5
        assert all(0.0 <= x <= 1.0 for x in numbers["auroc"]["mean"] if x is not None)
        # The last of the curve accepts all rows, whatever the score.
        assert numbers["pooled"]["area"]["mean"] > 0.0
    whole = {n: found["scores"][n]["risk"]["mean"][-1] for n, model in SCORES.items() if model == "MC-ETM"}
    assert len(set(whole.values())) == 1
    # Large noise on the state is hard to foresee for models that know nothing yet, and far from the data.
    far, near = names.index("state noise 1.0"), names.index("state noise 0.01")
    distance = found["scores"]["nearest neighbour"]["auroc"]["mean"]
    assert distance[far] > max(0.8, distance[near])
    assert {"hopper-medium", *SCORES} <= words_in(tmp_path / "energy-error")
    assert {"held out", "off the data", "truncated"} <= words_in(tmp_path / "energy-error-hopper")
    taken = found["seconds"][0]["of"]
    assert set(taken) == {"MC-ETM", "Gaussian ensemble"}
    assert all(seconds > 0.0 for seconds in taken.values())
    page = (tmp_path / "tables.md").read_text()
    assert all(f"| {name} |" in page for name in SCORES)

    def refuse(*_: object) -> None:
        raise AssertionError("a finished piece was made again")

    monkeypatch.setattr(study, "_piece", refuse)
    for drawing in ("draw_scores", "draw_ladder"):
        monkeypatch.setattr(study, drawing, lambda *_: None)  # seconds each, and seen above
    again = run_energy_error(EnergyErrorStudy(out=tmp_path))
    assert again["datasets"]["hopper-medium"]["errors"] == found["errors"]
    with pytest.raises(AssertionError):
        run_energy_error(EnergyErrorStudy(out=tmp_path), lambda name: replace(tiny(name), rate=0.05))
    with pytest.raises(AssertionError):
        run_energy_error(EnergyErrorStudy(out=tmp_path, seeds=2))  # the second is not there yet


def test_a_run_brings_its_own_models_and_learners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = mcetm.collect("hopper", 300, "uniform", processes=1)
    train, holdout = log.split(0.5)
    regressor, energy, threshold = untrained(train)
    low, high = -jnp.ones(3), jnp.ones(3)
    make = lambda k: SACLearner.init(SAC(width=8), Spaces(Statistics.of(train), low, high), key=k)  # noqa: E731
    learners = eqx.filter_vmap(make)(jax.random.split(jax.random.key(0), 2))
    config = make_config("fast", dataset="hopper-medium-v2", seeds=2, seed=4)
    world = World(
        replace(energy, regressor=regressor), _unrewarded, trust=TrustRegion(jnp.asarray(1.0), threshold)
    )
    agent = Agent(config.algorithm, learners.actor, (4, 5), [], learners)
    run = Finished(config, get_task("hopper"), train, holdout, Models(world), agent)
    monkeypatch.setattr(study, "read_finished", lambda folder: run)
    job = study._job_of_run(tmp_path, tiny)
    assert (job.dataset, job.seeds, job.config.samples) == ("hopper-medium", [4, 5], 5)
    assert job.config.models == ModelsConfig.of(config)
    parts = job.parts(5)
    known, test, subject = parts.known, parts.test, parts.subject
    assert parts.train is train
    assert len(known) + len(test) == len(holdout)
    assert not (known.obs[:, None] == test.obs).all(axis=-1).any()
    np.testing.assert_array_equal(subject.threshold.values, threshold.values)
    obs, key = jnp.asarray(test.obs[0]), jax.random.key(1)
    second = take_members(learners, 1)
    assert subject.valuer.next_value(obs, key=key) == second.next_value(obs, key=key)
    own = replace(run, config=replace(config, model=Lonely()))
    monkeypatch.setattr(study, "read_finished", lambda folder: own)
    with pytest.raises(UserError, match="a model of your own"):
        study._job_of_run(tmp_path, tiny)
    without = replace(run, train=replace(train, infos={}))
    monkeypatch.setattr(study, "read_finished", lambda folder: without)
    with pytest.raises(UserError, match="the simulator's states"):
        study._job_of_run(tmp_path, tiny)


def test_an_unfinished_run_and_one_without_an_energy_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for algo, sentence in (("mcetm", "is not finished"), ("mopo", "a model without energies")):
        start_run(make_config(algo=algo), tmp_path / algo)
        if algo == "mopo":
            write_json(tmp_path / algo / "results.json", {})
        assert main(["study", "energy-error", "--run", str(tmp_path / algo), "--out", "unused"]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--seeds", "0"], "'EnergyErrorStudy.seeds' should be greater"),
        (["--members", "0"], "'EnergyErrorStudy.members' should be greater"),
        (["--run", "nowhere"], "nowhere is not a run"),
        (["--run", "nowhere", "--tasks", "hopper"], "A run brings its own task"),
        (["--level", "medium-expert"], "no level 'medium-expert' of hopper"),
    ],
)
def test_mistakes_end_with_one_sentence(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "energy-error", *options, "--out", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_single_energy_has_every_score_but_those_between_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untrained_subject(
        train: Transitions, known: Transitions, task: object, config: EnergyErrorConfig, *_: object
    ) -> tuple[Subject, dict[str, float]]:
        regressor = untrained(train)[0]
        energy, threshold = untrained(train, config.models.energy.members)[1:]
        parts = {"regressor": regressor, "energy": energy, "threshold": threshold}
        return Subject.of(train, 50, seed=0, valuer=FirstComponent(), count=2, **parts), {}

    monkeypatch.setattr(study, "_train", untrained_subject)
    results = run_energy_error(EnergyErrorStudy(out=tmp_path, tasks=("hopper",), members=1, seeds=1))
    assert [*results["datasets"]["hopper-medium"]["scores"]] == [n for n in SCORES if n not in SPREADS]
    assert not {"member spread", "Q-penalty"} & words_in(tmp_path / "energy-error-hopper")


def test_the_papers_energies_are_trained_for_a_hundred_epochs_in_both_readings() -> None:
    models = PRESETS["paper"]("hopper-medium").models
    for energy in (models.energy, with_energy(models, "literal", small=False).energy):
        assert energy.steps * energy.batch_size == pytest.approx(100 * 900_000, rel=0.01)


def test_other_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["study", "energy-error", "--tasks", "pendulum", "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert "hopper" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_presets_have_the_models_of_training_and_either_energy() -> None:
    fast = PRESETS["fast"]("walker2d-medium")
    trained = ModelsConfig.of(make_config("fast", dataset="walker2d-medium"))
    # A higher rate, time that moves from the energy to its anchor, a support, and nothing else.
    anchor = replace(trained.gaussian, learning_rate=4e-3)
    shorter = replace(trained.energy, steps=trained.energy.steps // 20, schedule="cosine")
    support = SupportSettings(steps=16_000)
    assert fast.models == replace(trained, gaussian=anchor, energy=shorter, support=support)
    paper = PRESETS["paper"]("hopper-medium").models
    assert (paper.energy, paper.calibration.absolute) == (replace(PAPER_EMPO, steps=88_000), -5.0)
    plain = with_energy(fast.models, "plain", small=False)
    assert (plain.energy, plain.inference, plain.support) == (PAPER_EMPO, InferenceSettings(), None)
    assert with_energy(plain, "anchored", small=False).energy == ANCHORED
    literal = with_energy(plain, "literal", small=False)
    assert (literal.energy, literal.inference) == (PAPER, ModelsConfig.of(make_config("paper")).inference)
    short = with_energy(plain, "literal", small=True)
    assert short.inference is not None
    assert short.energy.ambient == replace(PAPER.ambient, steps=10) != replace(PAPER_EMPO.ambient, steps=10)
    assert short.inference.ambient.steps == 10
    assert with_energy(fast.models, "anchored", small=False) is fast.models
    assert replace(FULL_AUTOENCODER, latent_dim=5) == paper.autoencoder
    assert paper.gaussian == FULL_GAUSSIAN == trained.gaussian

"""Every algorithm by its name: it learns, it resumes, and one that somebody adds is as good as ours."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from safetensors.numpy import load_file

from mcetm import UserError, load_policy
from mcetm.agents import (
    ALGORITHMS,
    BC,
    COMBO,
    CQL,
    EDAC,
    EMPO,
    IQL,
    MCETM,
    MOPO,
    RAMBO,
    SAC,
    TD3,
    TD3BC,
    Agent,
    Algorithm,
    ModelBased,
    fit_agent,
)
from mcetm.agents.cql import Conservative
from mcetm.agents.learner import Learner
from mcetm.agents.rollout import Experience
from mcetm.cli import main
from mcetm.dynamics import World
from mcetm.nn.members import take_members
from mcetm.pipeline.config import name_of, plain_of
from mcetm.pipeline.presets import algorithm_names, make_config
from mcetm.settings import Weight, settings
from tests.agents.test_agents import LOG, ROLL, reward, world
from tests.agents.test_rambo import ensemble
from tests.export.example import assert_exports
from tests.pipeline.runs import small_settings
from tests.pipeline.test_any_model import small_log

SMALL: dict[str, Any] = {"width": 32, "batch_size": 64, "steps": 300, "discount": 0.8, "smoothing": 0.05}
RATES: dict[str, Any] = {"actor_rate": 3e-3, "critic_rate": 3e-3}
ON_SAC = SAC(temperature=0.01, **RATES, **SMALL)
ACTOR_FIRST = replace(ON_SAC, actor_first=True, critics=3)
ON_TD3 = TD3(**RATES, **SMALL)
IMAGINING: dict[str, Any] = {"rollout": replace(ROLL, every=100), "samples": 2}


@pytest.mark.parametrize(
    "algorithm",
    [
        COMBO(learner=ACTOR_FIRST, conservative=Conservative(weight=0.2, repeats=3), **IMAGINING),
        CQL(learner=ACTOR_FIRST, conservative=Conservative(weight=0.2, repeats=3)),
        EDAC(learner=ACTOR_FIRST),
        TD3BC(learner=ON_TD3),
        IQL(learning_rate=3e-3, **SMALL),
        MCETM(learner=ON_TD3, **IMAGINING),
    ],
    ids=lambda algorithm: type(algorithm).__name__,
)
def test_it_learns_to_go_home(algorithm: Algorithm, tmp_path: Path) -> None:
    """s' = s + a/2 and r = 1 − s'²: from either side the best action points to 0."""

    def train() -> Agent:
        return fit_agent(algorithm, LOG, world(), seeds=(0, 1), folder=tmp_path)

    trained = train()
    for seed in range(2):
        actor = take_members(trained.actors, seed)
        assert float(actor.mode(jnp.array([1.5]))[0]) < -0.25
        assert float(actor.mode(jnp.array([-1.5]))[0]) > 0.25
    assert trained.history[-1]["step"] == 300
    assert np.isfinite(trained.history[-1]["critic_loss"]).all()
    assert ("rollout_length" in trained.history[-1]) == algorithm.model_based
    assert_exports(trained.policies[0], LOG.obs[:9], tmp_path / "exported")
    if not isinstance(algorithm, COMBO | TD3BC):
        return  # one with a model and one without: reading back is the same for all
    again = train()
    for old, new in zip(
        jax.tree_util.tree_leaves(trained.actors), jax.tree_util.tree_leaves(again.actors), strict=True
    ):
        np.testing.assert_array_equal(old, new, err_msg="a finished stage is read back")
    with pytest.raises(UserError, match=r"'algorithm.learner.discount' was 0.8 and is now 0.7"):
        fit_agent(replace(algorithm, learner=replace(algorithm.learner, discount=0.7)), LOG, world(),
                  seeds=(0, 1), folder=tmp_path)  # fmt: skip


def test_rambo_trains_a_model_for_each_seed(tmp_path: Path) -> None:
    rambo = RAMBO(
        learner=replace(ON_SAC, steps=40),
        rollout=replace(ROLL, every=20),
        samples=2,
        clone=BC(width=32, batch_size=64, steps=40),
    )
    trained = fit_agent(rambo, LOG, World(ensemble(), reward), seeds=(0, 1), folder=tmp_path)
    losses = [line["model_loss"] for line in trained.history]
    assert len(losses) == 2
    assert losses[-1][0] != losses[-1][1], "each has its own"
    shared, first, second = (
        jax.tree_util.tree_leaves(model)[0]
        for model in (ensemble(), *(own.model for own in trained.worlds if own is not None))
    )
    assert shared.shape == first.shape == second.shape
    assert len({weights.tobytes() for weights in map(np.asarray, (shared, first, second))}) == 3
    assert (tmp_path / "cloned" / "metrics.jsonl").exists()
    (light,) = (tmp_path / "light").iterdir()
    assert any("ensemble" in name for name in load_file(light)), "the model travels with a light checkpoint"


class BegunError(Exception):
    """A training that should not have begun."""


@pytest.mark.parametrize(
    ("algorithm", "given", "words"),
    [
        (MOPO(), None, r"MOPO learns in a model of the world; give it one \(world=\)."),
        (RAMBO(), world(), "RAMBO trains the likelihood of its model"),
        (EMPO(), World(ensemble(), reward), "EMPO needs a model with energies"),
    ],
    ids=["no world", "no density", "no energies"],
)
def test_a_world_that_does_not_suit_is_refused(
    algorithm: Algorithm, given: World | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: object, **__: object) -> None:
        raise BegunError

    monkeypatch.setattr("mcetm.agents.fit.fit_bc", begin)
    monkeypatch.setattr("mcetm.agents.fit.train_loop", begin)
    with pytest.raises(UserError, match=words):
        fit_agent(algorithm, LOG, given)


@settings
class Timid(ModelBased):
    """Rewards of imagined steps are lowered by a price."""

    label: ClassVar[str] = "timid"

    name: Literal["timid"] = "timid"
    """Its name in files and on the command line."""
    price: Weight = 0.5
    """What a step costs."""

    def target(
        self, learner: Learner, row: Experience, value: Array, *, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        """The target of one imagined transition."""
        target, _ = super().target(learner, row, value, key=key)
        return target - self.price, {"paid": jnp.asarray(self.price)}


def test_an_algorithm_that_somebody_adds_trains_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in ("agents", "pipeline.config", "pipeline.presets"):
        monkeypatch.setattr(f"mcetm.{place}.ALGORITHMS", (*ALGORITHMS, Timid))
    assert "timid" in algorithm_names()
    small_log().save(tmp_path / "log.npz")
    out = tmp_path / "run"
    config, other = (make_config("quick", algo=algo) for algo in ("timid", "mopo"))
    ours, theirs = plain_of(config)["algorithm"], plain_of(other)["algorithm"]
    assert (ours["learner"], ours["rollout"]) == (theirs["learner"], theirs["rollout"]), "presets hold"
    arguments = f"--dataset {tmp_path / 'log.npz'} --algo timid --seeds 1 --out {out} --set algorithm.price=2"
    assert main(["train", *arguments.split(), *small_settings(config)]) == 0
    lines = (out / "metrics.jsonl").read_text().splitlines()
    assert '"paid": [2.0]' in lines[-1]
    assert load_policy(out).about["algorithm"] == "timid"
    assert main(["train", "--algo", "timd"]) == 2
    assert "did you mean 'timid'?" in capsys.readouterr().err
    assert main(["train", "--algo", "timid", "--set", "algorithm.price=-1"]) == 2
    assert "'algorithm.price' should be greater than or equal to 0, not -1" in capsys.readouterr().err


def test_every_algorithm_can_be_named_and_its_name_is_its_own() -> None:
    names = [name_of(kind) for kind in ALGORITHMS]
    assert len(set(names)) == len(names)
    assert len({kind.label for kind in ALGORITHMS}) == len(names)
    for name, kind in zip(names, ALGORITHMS, strict=True):
        config = make_config("quick", algo=name)
        assert type(config.algorithm) is kind
        assert (config.model is not None) == kind.model_based


def test_empos_published_chain_falls_short_of_a_large_change_and_a_long_one_does_not() -> None:
    towards = lambda target: lambda x: 5.0 * jnp.abs(x - target).sum()  # noqa: E731
    reached = {}
    for algo in ("empo", "empo-official"):
        chain = make_config("fast", dataset="hopper-medium", algo=algo).model.inference
        assert chain is not None
        keys = jax.random.split(jax.random.key(0), 500)
        ends = [
            jax.vmap(lambda k, t=target, c=chain.ambient: c(towards(t), jnp.zeros(1), key=k))(keys)
            for target in (0.1, 0.9)
        ]
        reached[algo] = [float(end.mean()) for end in ends]
    np.testing.assert_allclose(reached["empo"], [0.1, 0.9], atol=0.01)
    np.testing.assert_allclose(reached["empo-official"], [0.094, 0.254], atol=0.02)

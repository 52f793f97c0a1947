"""Every algorithm by its name: it learns, it resumes, and the command line knows it."""

import typing
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from mcetm.agents.bc import BCConfig
from mcetm.agents.iql import IQL
from mcetm.agents.sac import SAC
from mcetm.agents.td3 import TD3
from mcetm.cli.train import Train
from mcetm.dynamics import World
from mcetm.nn.members import take_members
from mcetm.pipeline.algorithms import ALGORITHMS
from mcetm.pipeline.config import Algo, PolicyConfig
from mcetm.pipeline.policy import train_policies
from mcetm.pipeline.presets import make_config
from tests.agents.test_agents import HIGH, LOG, LOW, ROLL, reward, world
from tests.agents.test_rambo import ensemble

SMALL = {"width": 32, "batch_size": 64, "steps": 300, "discount": 0.8, "smoothing": 0.05}
SAC = SAC(actor_rate=3e-3, critic_rate=3e-3, temperature=0.01, **SMALL)
CONFIG = PolicyConfig(
    sac=SAC,
    td3=TD3(actor_rate=3e-3, critic_rate=3e-3, **SMALL),
    iql=IQL(rate=3e-3, **SMALL),
    rollout=replace(ROLL, every=100),
    conservatism=0.2,
)


@pytest.mark.parametrize("algo", ["combo", "cql", "edac", "td3bc", "iql", "mcetm-td3bc"])
def test_it_learns_to_go_home(algo: Algo, tmp_path: Path) -> None:
    """s' = s + a/2 and r = 1 − s'²: from either side the best action points to 0."""
    config = replace(CONFIG, sac=replace(SAC, actor_first=algo in ("combo", "cql", "edac"), critics=3))
    imagined = None if ALGORITHMS[algo].needs == "log" else world()

    def train() -> typing.Any:
        bounds = (LOW, HIGH)
        return train_policies(
            LOG, imagined, algo, config, bounds, None, seeds=[0, 1], folder=tmp_path, label=algo
        )

    trained = train()
    for seed in range(2):
        actor = take_members(trained.actors, seed)
        assert float(actor.mode(jnp.array([1.5]))[0]) < -0.25
        assert float(actor.mode(jnp.array([-1.5]))[0]) > 0.25
    assert trained.history[-1]["step"] == 300
    assert np.isfinite(trained.history[-1]["critic_loss"]).all()
    assert ("rollout_length" in trained.history[-1]) == (imagined is not None)
    if algo not in ("combo", "td3bc"):
        return  # one with a model and one without: reading back is the same for all
    again = train()
    for old, new in zip(
        jax.tree_util.tree_leaves(trained.actors), jax.tree_util.tree_leaves(again.actors), strict=True
    ):
        np.testing.assert_array_equal(old, new, err_msg="a finished stage is read back")


def test_rambo_trains_a_model_for_each_seed(tmp_path: Path) -> None:
    config = changed_policy("rambo")
    trained = train_policies(
        LOG, World(ensemble(), reward, count=2), "rambo", config, (LOW, HIGH), None,
        seeds=[0, 1], folder=tmp_path, label="RAMBO",
    )  # fmt: skip
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


def changed_policy(algo: Algo) -> PolicyConfig:
    return replace(
        make_config("quick", algo=algo).policy,
        sac=replace(SAC, steps=40),
        bc=BCConfig(width=32, batch_size=64, steps=40),
        rollout=replace(ROLL, every=20),
    )


def test_all_lists_of_algorithms_agree() -> None:
    names = tuple(ALGORITHMS)
    assert sorted(typing.get_args(Algo)) == sorted(names)
    assert sorted(typing.get_args(typing.get_type_hints(Train)["algo"])) == sorted(names)


def test_published_settings_are_taken() -> None:
    cql, edac = (make_config("fast", dataset="hopper-medium", algo=algo).policy for algo in ("cql", "edac"))
    assert (cql.sac.depth, cql.sac.actor_first, cql.sac.most_temperature) == (3, True, None)
    assert (cql.conservatism, cql.sac.cosine) == (5.0, False)
    assert (edac.sac.critics, edac.diversity, edac.sac.most_temperature) == (50, 1.0, 1.0)
    combo = make_config("fast", dataset="walker2d-medium", algo="combo").policy
    assert (combo.conservatism, combo.rollout.horizon, combo.rollout.real_share) == (5.0, 1, 0.5)
    assert combo.sac.cosine
    mcetm = make_config("fast", dataset="walker2d-medium").policy
    assert combo.rollout.capacity == mcetm.rollout.capacity, "as much is imagined whatever the horizon"
    rambo = make_config("fast", dataset="walker2d-medium-expert", algo="rambo").policy
    assert (rambo.adversarial, rambo.rollout.horizon, rambo.rollout.every) == (3e-4, 2, 250)
    steps = [make_config("paper", algo=algo).policy.sac.steps for algo in ("cql", "combo", "rambo", "edac")]
    assert steps == [1_000_000, 1_000_000, 2_000_000, 3_000_000]
    assert edac.sac.critic_initialisation == "small-end"
    on_td3 = make_config("paper", dataset="hopper-medium", algo="mcetm-td3bc")
    assert (on_td3.policy.penalty, on_td3.models.calibration.absolute) == (1.5, -5.0)
    paper = make_config("paper", dataset="hopper-medium", algo="mcetm").policy
    assert (paper.sac.temperature, paper.penalty) == (0.2, 1.5)
    assert make_config("paper", dataset="walker2d-medium", algo="mcetm").policy.sac.temperature is None


def test_empos_published_chain_falls_short_of_a_large_change_and_a_long_one_does_not() -> None:
    towards = lambda target: lambda x: 5.0 * jnp.abs(x - target).sum()  # noqa: E731
    reached = {}
    for algo in ("empo", "empo-official"):
        chain = make_config("fast", dataset="hopper-medium", algo=algo).models.inference
        assert chain is not None
        keys = jax.random.split(jax.random.key(0), 500)
        ends = [
            jax.vmap(lambda k, t=target, c=chain.ambient: c(towards(t), jnp.zeros(1), key=k))(keys)
            for target in (0.1, 0.9)
        ]
        reached[algo] = [float(end.mean()) for end in ends]
    np.testing.assert_allclose(reached["empo"], [0.1, 0.9], atol=0.01)
    np.testing.assert_allclose(reached["empo-official"], [0.094, 0.254], atol=0.02)
